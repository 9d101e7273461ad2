"""What a controller's listener serves: its APIs, which are other than a broker's, and the rights that they need."""
