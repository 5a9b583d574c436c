#include <doctest/doctest.h>

#include "in_bwrap.h"

using namespace llm_sandbox;
using Names = std::vector<std::string>;

namespace {

InBwrap python() { return {*LanguageCatalog::built_in().find("python"), "/usr/bin/python3"}; }

bool can_draw() {
  std::string missing = python().missing();
  if (missing.empty() && !std::filesystem::exists("/usr/lib/python3/dist-packages/matplotlib"))
    missing = "python3-matplotlib";
  if (!missing.empty()) MESSAGE("skipped: " << missing);
  return missing.empty();
}

/// Runs a program that is to end well and silently.
Ran draw(const std::string& code) {
  Ran ran = python().with_runner("import matplotlib.pyplot as plt\n" + code);
  CHECK(ran.exit_code == 0);
  CHECK(ran.err == "");
  return ran;
}

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes.at(i));
  return value;
}

struct PngSize {
  uint32_t width;
  uint32_t height;
};

PngSize png_size(const std::string& content) {
  REQUIRE(content.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  return {big_endian(content, 16), big_endian(content, 20)};
}

}  // namespace

TEST_CASE("figures that are shown come in the order of their numbers and are closed then") {
  if (!can_draw()) return;
  const Ran ran = draw(
      "plt.figure(2); plt.plot([1, 2])\nplt.figure(1); plt.plot([3])\n"
      "print(plt.show(), plt.get_fignums())\nplt.plot([4]); plt.show(block=True); print(plt.get_fignums())");
  CHECK(ran.artifact_names() == Names{"000001-figure-1.png", "000002-figure-2.png", "000003-figure-1.png"});
  CHECK(ran.out == "None []\n[]\n");
  CHECK(ran.notes.empty());
  const PngSize size = png_size(ran.artifacts[0].second);  // 6.4 x 4.8 inches at 100 dpi, trimmed
  CHECK(size.width > 400);
  CHECK(size.width < 640);
  CHECK(size.height > 300);
  CHECK(size.height < 480);
}

TEST_CASE("figures left open are captured at the end, however it comes about") {
  if (!can_draw()) return;
  CHECK(draw("plt.plot([1]); plt.figure(); plt.plot([2])").artifact_names() ==
        Names{"000001-figure-1.png", "000002-figure-2.png"});
  const std::string start = "import matplotlib.pyplot as plt\nplt.plot([1])\n";
  const Ran raised = python().with_runner(start + "1 / 0");
  CHECK(raised.exit_code == 1);
  CHECK(raised.err.find("line 3, in <module>") != std::string::npos);
  CHECK(raised.artifacts.size() == 1);
  const Ran exited = python().with_runner(start + "raise SystemExit(5)");
  CHECK(exited.exit_code == 5);
  CHECK(exited.artifacts.size() == 1);
  CHECK(python().with_runner(start + "import os; os._exit(0)").artifacts.empty());
  CHECK(draw("plt.plot([1]); plt.close()").artifacts.empty());
}

TEST_CASE("a figure without anything on it is no image") {
  if (!can_draw()) return;
  CHECK(draw("plt.figure(); plt.show(); plt.figure()").artifacts.empty());
  CHECK(draw("plt.figure().suptitle('words')").artifacts.size() == 1);
}

TEST_CASE("a figure that the program saved in its workspace is not captured as well") {
  if (!can_draw()) return;
  CHECK(draw("plt.plot([1]); plt.savefig('a.png'); plt.show()").artifacts.empty());
  CHECK(draw("plt.plot([1]); plt.gcf().savefig('/sandbox/a'); plt.gcf().savefig('a.svg')").artifacts.empty());
  const Names one{"000001-figure-1.png"};
  CHECK(draw("plt.plot([1]); plt.savefig('a.png'); plt.plot([2])").artifact_names() == one);
  CHECK(draw("plt.plot([1]); plt.savefig('/tmp/a.png')").artifact_names() == one);
  CHECK(draw("plt.plot([1]); plt.savefig('a.pdf')").artifact_names() == one);
  CHECK(draw("import io; plt.plot([1]); plt.savefig(io.BytesIO())").artifact_names() == one);
  CHECK(draw("import os; plt.plot([1]); plt.savefig('a.png'); os.remove('a.png')").artifact_names() == one);
  CHECK(
      draw("plt.plot([1]); plt.savefig('a.png'); plt.figure(); plt.plot([2]); plt.savefig('a.png')").artifact_names() ==
      one);
}

TEST_CASE("a figure is captured once for each state in which it was shown") {
  if (!can_draw()) return;
  CHECK(draw("plt.plot([1]); plt.show(block=False)").artifacts.size() == 1);
  CHECK(draw("plt.plot([1]); plt.show(block=False); plt.plot([2])").artifacts.size() == 2);
  CHECK(draw("f = plt.figure(); plt.plot([1]); f.show(); plt.close()").artifacts.size() == 1);
  CHECK(draw("plt.ion(); plt.plot([1]); plt.show(); print(plt.get_fignums())").out == "[1]\n");
}

TEST_CASE("of a live animation the first and the last frame are captured") {
  if (!can_draw()) return;
  const Ran ran = draw(
      "line, = plt.plot([0, 1])\nfor i in range(5):\n    line.set_ydata([i, 1]); plt.pause(0.001)\n"
      "plt.plot([2, 3])");
  CHECK(ran.artifacts.size() == 2);
}

TEST_CASE("backends that need a display draw in memory") {
  if (!can_draw()) return;
  for (const std::string backend : {"TkAgg", "Qt5Agg", "GTK3Agg", "WXAgg", "nbAgg"}) {
    CAPTURE(backend);
    const Ran before = python().with_runner("import matplotlib\nmatplotlib.use('" + backend +
                                            "')\nimport matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()");
    CHECK(before.exit_code == 0);
    CHECK(before.err == "");
    CHECK(before.artifacts.size() == 1);
  }
  CHECK(draw("import matplotlib; matplotlib.use('TkAgg'); plt.plot([1])").artifacts.size() == 1);
  CHECK(draw("plt.switch_backend('QtAgg'); plt.plot([1])").artifacts.size() == 1);
  const Ran unknown = python().with_runner("import matplotlib\nmatplotlib.use('nonsense')");
  CHECK(unknown.err == python().bare("import matplotlib\nmatplotlib.use('nonsense')").err);
}

TEST_CASE("nothing of the capture is seen by the program") {
  if (!can_draw()) return;
  const Ran ran = draw(
      "import sys\nprint([m for m in sys.modules if 'llm' in m], plt.__loader__.__class__.__name__, "
      "plt.__spec__.loader is plt.__loader__, vars(plt.__loader__).keys(), plt.get_backend(), plt.show.__name__, "
      "plt.Figure.savefig.__qualname__)\nprint(sorted(globals()))");
  const std::string names =
      "['__annotations__', '__builtins__', '__cached__', '__doc__', '__file__', '__loader__', '__name__', "
      "'__package__', '__spec__', 'plt', 'sys']\n";
  CHECK(ran.out == "[] SourceFileLoader True dict_keys(['name', 'path']) agg show Figure.savefig\n" + names);
}

TEST_CASE("the traceback of a failing savefig does not name the runner") {
  if (!can_draw()) return;
  const Ran ran = python().with_runner("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig('/nowhere/a.png')");
  CHECK(ran.exit_code == 1);
  CHECK(ran.err.find("FileNotFoundError") != std::string::npos);
  CHECK(ran.err.find("llm") == std::string::npos);
  CHECK(ran.artifacts.size() == 1);
}

TEST_CASE("a figure that cannot be drawn becomes a note") {
  if (!can_draw()) return;
  const Ran ran = draw("plt.plot([1]); plt.title('$\\\\frac$'); plt.figure(); plt.plot([2])");
  CHECK(ran.artifact_names() == Names{"000001-figure-2.png"});
  REQUIRE(ran.notes.size() == 1);
  CHECK(ran.notes[0].rfind("Figure 1 could not be captured: ValueError: ", 0) == 0);
}

TEST_CASE("what matplotlib remarks while drawing becomes notes, not output") {
  if (!can_draw()) return;
  const Ran ran = draw("plt.rcParams['font.family'] = 'No Such Font'\nplt.plot([1]); plt.title('\\u6f22')");
  CHECK(ran.artifacts.size() == 1);
  CHECK(ran.notes.size() == 2);
}

TEST_CASE("very large figures are drawn smaller, what lies far outside is cut off") {
  if (!can_draw()) return;
  const Ran ran = draw("plt.figure(figsize=(300, 200)); plt.plot([1]); plt.figure(); plt.text(300, 300, 'far')");
  REQUIRE(ran.artifacts.size() == 2);
  const PngSize large = png_size(ran.artifacts[0].second);
  CHECK(uint64_t{large.width} * large.height <= 50'000'000);
  CHECK(uint64_t{large.width} * large.height > 20'000'000);
  CHECK(png_size(ran.artifacts[1].second).width < 1000);
  REQUIRE(ran.notes.size() == 2);
  CHECK(ran.notes[0].rfind("Figure 1 is very large", 0) == 0);
  CHECK(ran.notes[1].rfind("Figure 2 has something drawn far outside", 0) == 0);
}

TEST_CASE("of a thousand figures the first fifty are captured") {
  if (!can_draw()) return;
  const Ran ran = draw(
      "plt.rcParams['figure.max_open_warning'] = 0\n"
      "for i in range(1000): plt.figure(figsize=(0.3, 0.3)).text(0, 0, 'x')");
  CHECK(ran.artifacts.size() == 50);
  CHECK(ran.artifacts.back().first == "000050-figure-50.png");
  CHECK(ran.notes == Names{"Only the first 50 images were captured."});
}

TEST_CASE("a forked child does not capture its parent's figures, but what it shows itself") {
  if (!can_draw()) return;
  const std::string fork = "import os, sys\nplt.plot([1])\nif os.fork() == 0:\n    ";
  CHECK(draw(fork + "sys.exit(0)\nos.wait()").artifacts.size() == 1);
  CHECK(draw(fork + "plt.close(); plt.figure(); plt.plot([2]); plt.show(); sys.exit(0)\nos.wait()").artifact_names() ==
        Names{"000001-figure-1.png", "000002-figure-1.png"});
}

TEST_CASE("an image that is shown with Pillow is captured") {
  if (!can_draw()) return;
  const Ran ran = draw(
      "from PIL import Image\nImage.new('RGB', (30, 20), 'red').show()\nImage.new('CMYK', (40, 10)).show('title')\n"
      "Image.new('F', (5, 5)).show(); Image.new('RGBA', (6, 6)).show()\nplt.plot([1])");
  REQUIRE(ran.artifact_names() ==
          Names{"000001-image.png", "000002-image.png", "000003-image.png", "000004-image.png", "000005-figure-1.png"});
  CHECK(png_size(ran.artifacts[0].second).width == 30);
  CHECK(png_size(ran.artifacts[1].second).height == 10);
  CHECK(ran.notes.empty());
}

TEST_CASE("a program draws undisturbed where captures cannot be put") {
  if (!can_draw()) return;
  const Ran ran = python().without_artifact_folder(
      "import matplotlib.pyplot as plt\nplt.plot([1]); plt.show(); plt.plot([2])\n"
      "from PIL import Image; Image.new('1', (9, 9)).show()\nprint('end')");
  CHECK(ran.exit_code == 0);
  CHECK(ran.out == "end\n");
  CHECK(ran.err == "");
}

TEST_CASE("of an animation that waits for its window the last frame is captured") {
  if (!can_draw()) return;
  const std::string begin =
      "from matplotlib.animation import FuncAnimation\nfigure, axes = plt.subplots(figsize=(3, 2))\n"
      "frames = []\ndef draw(frame):\n    frames.append(frame)\n    return axes.plot([0, frame])\n";
  for (const std::string blit : {"False", "True"}) {
    const Ran ran = draw(begin + "animation = FuncAnimation(figure, draw, frames=7, blit=" + blit +
                         ")\nplt.show()\nprint(frames[-1], axes.get_lines()[-1].get_ydata()[-1])");
    CHECK(ran.out == "6 6\n");
    CHECK(ran.artifact_names() == Names{"000001-figure-1.png"});
    CHECK(ran.notes.empty());
  }
  const Ran saved =
      draw(begin + "animation = FuncAnimation(figure, draw, frames=3)\nanimation.save('a.gif', 'pillow')");
  CHECK(saved.workspace == Names{"a.gif", "main.py"});
  CHECK(saved.artifacts.empty());
  const Ran failing =
      draw(begin + "animation = FuncAnimation(figure, lambda frame: draw(frame) if frame < 3 else 1 / 0)");
  CHECK(failing.artifacts.size() == 1);
  REQUIRE(failing.notes.size() == 1);
  CHECK(failing.notes[0] == "Figure 1 is an animation that failed: ZeroDivisionError: division by zero");
  const Ran endless = draw(begin +
                           "animation = FuncAnimation(figure, lambda frame: None, frames=iter(int, 1), "
                           "save_count=10 ** 9)\nplt.plot([1])");
  CHECK(endless.artifacts.size() == 1);
  REQUIRE(endless.notes.size() == 1);
  CHECK(endless.notes[0].find("the last one was too far") != std::string::npos);
}
