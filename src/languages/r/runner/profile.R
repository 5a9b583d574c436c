# Gets in before the user's program (by R_PROFILE_USER), so that plots can be captured, and leaves no trace but an
# option and a hook. Read anew at each start, so short.
local({
  folder <- dirname(Sys.getenv("R_PROFILE_USER"))
  Sys.unsetenv("R_PROFILE_USER")

  capture <- NULL
  # plots.R, loaded where a program draws; compiled by prepare.R, as R would otherwise do that in the midst of drawing.
  plots <- function() {
    if (is.null(capture)) {
      prepared <- "/opt/llm-sandbox/prepared/plots.rds"
      if (file.exists(prepared)) {
        capture <<- readRDS(prepared)
      } else {
        capture <<- new.env(parent = baseenv())
        sys.source(file.path(folder, "plots.R"), capture, keep.source = FALSE)
      }
      capture$process <- Sys.getpid()
    }
    capture
  }

  # The device that is opened where the program names none; dev.new() hands over only the arguments that stand here.
  options(device = function(width = 7, height = 7, units = "in", unit = units, pointsize = 12, bg = "white")
    plots()$open_device(width, height, unit, pointsize, bg))
  setHook(packageEvent("htmlwidgets", "onLoad"), function(...) plots()$watch_widgets())

  # R reads a program as it goes and says what is wrong with its text, but not in which line.
  tell_line <- function(...) {
    if (!startsWith(geterrmessage(), "Error: ")) return()
    file <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[1])
    wrong <- tryCatch({
      parse(file, keep.source = FALSE)
      ""
    }, error = conditionMessage)
    # "/sandbox/main.R:3:5: unexpected symbol" and some lines of the text.
    if (startsWith(wrong, file)) plots()$note(sub("\n.*", "", substring(wrong, nchar(dirname(file)) + 2)))
  }
  reg.finalizer(baseenv(), function(...) tryCatch(tell_line(), error = function(e) NULL), onexit = TRUE)
  invisible()
}, new.env(parent = baseenv()))
