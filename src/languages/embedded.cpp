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

struct Script {
  std::string_view path;
  std::string_view (*content)();
};

#include "embedded_scripts.inc"  // kScripts

}  // namespace llm_sandbox::embedded

namespace llm_sandbox {

std::vector<std::string_view> embedded_languages() {
  return {embedded::language_python(), embedded::language_java(), embedded::language_javascript(),
          embedded::language_cpp(),    embedded::language_go(),   embedded::language_ruby(),
          embedded::language_r()};
}

std::optional<std::string_view> embedded_script(std::string_view path) {
  for (const auto& script : embedded::kScripts)
    if (script.path == path) return script.content();
  return std::nullopt;
}

}  // namespace llm_sandbox
