# Gets in before the user's program (by R_PROFILE_USER), so that plots can be captured, and leaves no trace but an option
# and a hook. Read anew at each start: short.
local({
  folder <- dirname(Sys.getenv("R_PROFILE_USER"))
  Sys.unsetenv("R_PROFILE_USER")

  capture <- NULL
  # plots.R, loaded by the first program that draws.
  plots <- function() {
    if (is.null(capture)) {
      capture <<- new.env(parent = baseenv())
      sys.source(file.path(folder, "plots.R"), capture, keep.source = FALSE)
    }
    capture
  }

  # The device that is opened where the program names none; dev.new() hands over only the arguments that stand here.
  options(device = function(width = 7, height = 7, units = "in", unit = units, res = NA, pointsize = 12, bg = "white")
    plots()$open_device(width, height, unit, res, pointsize, bg))
  setHook(packageEvent("htmlwidgets", "onLoad"), function(...) plots()$watch_widgets())
}, new.env(parent = baseenv()))
