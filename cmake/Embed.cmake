# embed_file(TARGET SYMBOL PATH): puts the bytes of a file into TARGET. The code reads them through
#   namespace llm_sandbox::embedded { std::string_view SYMBOL(); }
# which the using file declares itself.
function(embed_file target symbol path)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded_${symbol}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [=[
#include <string_view>
asm(".pushsection .rodata\n"
    ".balign 16\n"
    ".global embedded_@symbol@\nembedded_@symbol@:\n"
    ".incbin \"@path@\"\n"
    ".global embedded_@symbol@_end\nembedded_@symbol@_end:\n"
    ".byte 0\n"
    ".popsection\n");
extern "C" const char embedded_@symbol@[];
extern "C" const char embedded_@symbol@_end[];
namespace llm_sandbox::embedded {
std::string_view @symbol@();
std::string_view @symbol@() {
  return {embedded_@symbol@, static_cast<std::size_t>(embedded_@symbol@_end - embedded_@symbol@)};
}
}  // namespace llm_sandbox::embedded
]=])
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${path})
  target_sources(${target} PRIVATE ${source})
endfunction()
