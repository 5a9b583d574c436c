# Captures what a program draws, out of band: into a folder that the server empties after the run.
#
# Base, grid, lattice, ggplot2: each page of a device that the program did not open by itself. htmlwidgets (plotly):
# each widget that is printed. Nothing here may break the program or print anything; what could not be captured becomes
# a sentence in the notes.

ARTIFACTS <- "/tmp/.llm-sandbox/artifacts" # kArtifactFolder; name order is drawing order, hidden names are unfinished
NOTES <- "/tmp/.llm-sandbox/notes" # one sentence a line

DPI <- 100
MAX_PIXELS <- 40e6
MAX_SIDE <- 32767 # cairo's
MAX_IMAGES <- 50
MAX_NOTES <- 20
MAX_NOTE <- 400 # characters

process <- 0 # the one that has loaded this
quietly <- function(code) tryCatch(suppressWarnings(suppressMessages(code)), error = function(e) NULL)

# --- Devices ----------------------------------------------------------------------------------------------------------
# A device writes a file for each page, complete once the next page is begun or the device is closed.

devices <- list()
opened <- 0

open_device <- function(width, height, unit, pointsize, bg) {
  if (opened == 0) watch()
  leave_parent()
  opened <<- opened + 1
  per_inch <- switch(unit, px = DPI, cm = 2.54, mm = 25.4, 1)
  width <- width / per_inch
  height <- height / per_inch
  if (images >= MAX_IMAGES) {
    note_bound()
    return(open_blind(width, height, pointsize, bg))
  }
  dir.create(ARTIFACTS, showWarnings = FALSE, recursive = TRUE)
  device <- new.env(parent = emptyenv())
  device$files <- sprintf("%s/.%d-%d-%%06d.part", ARTIFACTS, Sys.getpid(), opened)
  device$size <- c(width, height)
  device$handed_over <- 0
  device$begun <- list() # page -> when; a file's own time is that of its end
  device$kind <- "png"
  open <- if (capabilities("cairo")) open_png else open_pdf
  if (file.access(ARTIFACTS, 2) != 0 || !isTRUE(quietly(open(device, pointsize, bg)))) {
    open_blind(width, height, pointsize, bg)
    return(note(sprintf("A figure of %g x %g inches could not be captured.", width, height)))
  }
  device$number <- grDevices::dev.cur()
  grDevices::dev.control("enable") # as on a screen: dev.copy() and recordPlot() work
  devices <<- c(devices, device)
}

open_png <- function(device, pointsize, bg) {
  dpi <- min(DPI, sqrt(MAX_PIXELS / prod(device$size)), MAX_SIDE / device$size)
  before <- grDevices::dev.cur()
  grDevices::png(device$files, device$size[1], device$size[2], "in", pointsize, bg, dpi, type = "cairo")
  if (grDevices::dev.cur() == before) return(FALSE)
  size <- sprintf("%g x %g inches", device$size[1], device$size[2])
  if (dpi < DPI) note(sprintf("A figure is very large (%s) and was drawn at %.0f dpi.", size, dpi))
  TRUE
}

open_pdf <- function(device, pointsize, bg) {
  note("This R cannot draw PNG images, as it was built without cairo, so figures come as PDF.")
  device$kind <- "pdf"
  grDevices::pdf(device$files, device$size[1], device$size[2], onefile = FALSE, pointsize = pointsize, bg = bg)
  TRUE
}

# For what comes after the last image.
open_blind <- function(width, height, pointsize = 12, bg = "white") {
  grDevices::pdf(NULL, width, height, pointsize = pointsize, bg = bg)
  grDevices::dev.control("enable")
}

watch <- function() {
  setHook("before.plot.new", before_page)
  setHook("before.grid.newpage", before_page)
  setHook("plot.new", after_page)
  setHook("grid.newpage", after_page)
  reg.finalizer(baseenv(), function(...) at_end(), onexit = TRUE)
}

# A forked child must not go on with the devices of its parent: both would write to the same files.
leave_parent <- function() {
  if (Sys.getpid() == process) return()
  inherited <- current_device()
  process <<- Sys.getpid()
  devices <<- list()
  if (!is.null(inherited)) open_device(inherited$size[1], inherited$size[2], "in", 12, "white")
}

before_page <- function() quietly({
  leave_parent()
  device <- current_device()
  if (images >= MAX_IMAGES && !is.null(device)) {
    grDevices::dev.off()
    open_blind(device$size[1], device$size[2])
  }
})

after_page <- function() quietly({
  device <- current_device()
  if (!is.null(device)) {
    page <- device$handed_over + length(unfetched(device))
    if (length(device$begun) < page || is.null(device$begun[[page]])) device$begun[[page]] <- Sys.time()
  }
  hand_over()
})

# However the program ends: R closes the devices only after this.
at_end <- function() quietly({
  if (Sys.getpid() == process) {
    for (device in devices) if (is_open(device)) grDevices::dev.off(device$number)
    hand_over()
  }
})

current_device <- function() {
  for (device in devices) if (is_open(device) && device$number == grDevices::dev.cur()) return(device)
  NULL
}

# The number may have become that of another device.
is_open <- function(device) {
  all <- get(".Devices", baseenv())
  device$number <= length(all) && identical(attr(all[[device$number]], "filepath"), device$files)
}

# The files of the pages that have not been handed over, the begun one among them.
unfetched <- function(device) {
  files <- character()
  repeat {
    file <- sprintf(device$files, as.integer(device$handed_over + length(files) + 1))
    if (!file.exists(file)) return(files)
    files <- c(files, file)
  }
}

# All complete pages, in the order in which they were begun.
hand_over <- function() {
  pages <- list()
  for (device in devices) {
    files <- unfetched(device)
    open <- is_open(device)
    if (open) files <- files[-length(files)]
    for (file in files) {
      device$handed_over <- device$handed_over + 1
      begun <- if (device$handed_over <= length(device$begun)) device$begun[[device$handed_over]]
      if (is.null(begun)) begun <- file.mtime(file)
      pages <- c(pages, list(list(file = file, kind = device$kind, begun = begun)))
    }
    if (!open) devices <<- Filter(function(other) !identical(other, device), devices)
  }
  for (page in pages[order(vapply(pages, function(page) as.numeric(page$begun), 0))]) {
    if (!is_blank(page$file)) {
      figures <<- figures + 1
      Sys.setFileTime(page$file, page$begun)
      publish(page$file, paste0("figure-", figures, ".", page$kind))
    }
    unlink(page$file)
  }
}

# A PNG whose palette holds one colour, or a file that was not finished.
is_blank <- function(file) {
  start <- readBin(file, "raw", 41)
  length(start) < 41 || identical(start[34:41], c(as.raw(c(0, 0, 0, 3)), charToRaw("PLTE")))
}

# --- Widgets ----------------------------------------------------------------------------------------------------------

watch_widgets <- function() quietly(
  registerS3method("print", "htmlwidget", function(x, ...) {
    quietly(publish_widget(x))
    invisible(x)
  }, asNamespace("htmlwidgets")))

publish_widget <- function(widget) {
  dir.create(ARTIFACTS, showWarnings = FALSE, recursive = TRUE)
  hidden <- sprintf("%s/.%d-widget.part", ARTIFACTS, Sys.getpid())
  on.exit(unlink(hidden))
  writeLines(page_of(widget), hidden, useBytes = TRUE)
  publish(hidden, "widget.html")
}

# One file: saveWidget() would need pandoc for that.
page_of <- function(widget) {
  tags <- htmltools::renderTags(htmltools::as.tags(widget, standalone = TRUE))
  c("<!DOCTYPE html>", "<html><head><meta charset=\"utf-8\">",
    unlist(lapply(htmltools::resolveDependencies(tags$dependencies), inlined)), as.character(tags$head),
    "</head><body>", as.character(tags$html), "</body></html>")
}

inlined <- function(dependency) {
  folder <- dependency$src$file
  if (!is.null(dependency$package)) folder <- system.file(folder, package = dependency$package)
  text <- function(files) vapply(files, function(file) {
    file <- file.path(folder, file)
    content <- readChar(file, file.size(file), useBytes = TRUE)
    gsub("</(script|style)", "<\\\\/\\1", content, useBytes = TRUE)
  }, "")
  names_in <- function(entries) vapply(as.list(entries), function(entry) if (is.list(entry)) entry$src else entry, "")
  c(sprintf("<script>%s</script>", text(names_in(dependency$script))),
    sprintf("<style>%s</style>", text(names_in(dependency$stylesheet))), dependency$head)
}

# --- Out of band ------------------------------------------------------------------------------------------------------

images <- 0
figures <- 0
notes <- character()

# Gives a finished file the next free number. All or nothing, even if we are killed in between.
publish <- function(file, label) {
  if (images >= MAX_IMAGES) return(note_bound())
  repeat { # a forked child counts on its own
    images <<- images + 1
    numbered <- sprintf("%s/%06d-%s", ARTIFACTS, as.integer(images), label)
    if (suppressWarnings(file.link(file, numbered))) return()
    if (!file.exists(numbered)) stop("no link")
  }
}

note_bound <- function() note(sprintf("Only the first %d images were captured.", MAX_IMAGES))

# Each sentence once.
note <- function(sentence) quietly({
  if (length(notes) < MAX_NOTES && !sentence %in% notes) {
    notes <<- c(notes, sentence)
    dir.create(dirname(NOTES), showWarnings = FALSE, recursive = TRUE)
    cat(substr(gsub("[[:space:]]+", " ", sentence), 1, MAX_NOTE), "\n", sep = "", file = NOTES, append = TRUE)
  }
})
