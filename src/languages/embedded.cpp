#include "languages/embedded.h"

// Defined by embed_file() in CMakeLists.txt.
namespace llm_sandbox::embedded {
std::string_view language_python();
std::string_view language_java();
std::string_view language_javascript();
std::string_view language_cpp();
std::string_view language_go();
std::string_view language_ruby();
std::string_view language_r();
std::string_view python_describe();
std::string_view python_sitecustomize();
std::string_view python_plots();
std::string_view python_pages();
std::string_view python_prepare();
std::string_view python_install();
std::string_view javascript_describe();
std::string_view javascript_run();
std::string_view r_describe();
std::string_view r_start();
std::string_view r_profile();
std::string_view r_plots();
std::string_view r_prepare();
std::string_view r_install();
std::string_view ruby_describe();
std::string_view ruby_prepare();
std::string_view ruby_start();
std::string_view java_describe();
std::string_view java_compile();
std::string_view java_prepare();
std::string_view java_compile_program();
std::string_view java_training();
std::string_view java_install_packages();
std::string_view java_collect_jars();
}  // namespace llm_sandbox::embedded

namespace llm_sandbox {
namespace {

struct Script {
  std::string_view path;
  std::string_view (*content)();
};

constexpr Script kScripts[] = {
    {"python/describe.py", embedded::python_describe},
    {"python/runner/sitecustomize.py", embedded::python_sitecustomize},
    {"python/runner/llm_sandbox_plots.py", embedded::python_plots},
    {"python/runner/llm_sandbox_pages.py", embedded::python_pages},
    {"python/runner/prepare.py", embedded::python_prepare},
    {"python/runner/install.py", embedded::python_install},
    {"javascript/describe.cjs", embedded::javascript_describe},
    {"javascript/runner/run.cjs", embedded::javascript_run},
    {"r/describe.R", embedded::r_describe},
    {"r/runner/start.sh", embedded::r_start},
    {"r/runner/profile.R", embedded::r_profile},
    {"r/runner/plots.R", embedded::r_plots},
    {"r/runner/prepare.R", embedded::r_prepare},
    {"r/runner/install.R", embedded::r_install},
    {"ruby/describe.rb", embedded::ruby_describe},
    {"ruby/runner/prepare.rb", embedded::ruby_prepare},
    {"ruby/runner/start.rb", embedded::ruby_start},
    {"java/describe.sh", embedded::java_describe},
    {"java/runner/compile.sh", embedded::java_compile},
    {"java/runner/prepare.sh", embedded::java_prepare},
    {"java/runner/CompileProgram.java", embedded::java_compile_program},
    {"java/runner/Training.java", embedded::java_training},
    {"java/runner/InstallPackages.java", embedded::java_install_packages},
    {"java/runner/CollectJars.java", embedded::java_collect_jars},
};

}  // namespace

std::vector<std::string_view> embedded_languages() {
  return {embedded::language_python(), embedded::language_java(), embedded::language_javascript(),
          embedded::language_cpp(),    embedded::language_go(),   embedded::language_ruby(),
          embedded::language_r()};
}

std::optional<std::string_view> embedded_script(std::string_view path) {
  for (const auto& script : kScripts)
    if (script.path == path) return script.content();
  return std::nullopt;
}

}  // namespace llm_sandbox
