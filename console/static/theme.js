// Before anything is shown: light or dark as it was chosen here, else as the system has it; and that there is script.
"use strict";
{
  const chosen = localStorage.getItem("ottla-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  document.documentElement.classList.add("js");
}
