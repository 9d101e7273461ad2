"""The handlers of a controller's listener: APIs other than a broker's, and the rights that they need."""
