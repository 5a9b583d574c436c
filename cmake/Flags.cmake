# `common_flags`: warnings and hardening for every target of ours. `server_flags`: the same plus the sanitizers, for all but
# the static programs that go into a sandbox (a sanitizer's runtime cannot live there).
add_library(common_flags INTERFACE)
target_include_directories(common_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(common_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wimplicit-fallthrough -fstack-protector-strong -fstack-clash-protection -fcf-protection)
# g++ 12 sees overlapping copies in `"literal" + std::string` where there are none (GCC bug 105329).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(common_flags INTERFACE -Wno-restrict)
endif()
target_compile_definitions(common_flags INTERFACE _GLIBCXX_ASSERTIONS)
if(LLM_SANDBOX_WERROR)
  target_compile_options(common_flags INTERFACE -Werror)
endif()
if(CMAKE_BUILD_TYPE MATCHES "Release|RelWithDebInfo")
  target_compile_options(common_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()

add_library(server_flags INTERFACE)
target_link_libraries(server_flags INTERFACE common_flags Threads::Threads tl::expected)
target_compile_options(server_flags INTERFACE -fPIE)
target_link_options(server_flags INTERFACE -pie -Wl,-z,relro,-z,now,-z,noexecstack)
# Asio's memory fences are none that ThreadSanitizer knows, of which g++ warns.
if(LLM_SANDBOX_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(server_flags INTERFACE -Wno-tsan)
endif()
if(LLM_SANDBOX_SANITIZE)
  target_compile_options(server_flags INTERFACE -fsanitize=${LLM_SANDBOX_SANITIZE} -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer -g)
  target_link_options(server_flags INTERFACE -fsanitize=${LLM_SANDBOX_SANITIZE})
elseif(NOT LLM_SANDBOX_FUZZ)
  target_link_options(server_flags INTERFACE -static-libstdc++ -static-libgcc)
endif()
if(LLM_SANDBOX_FUZZ)
  target_compile_options(server_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=function
                                                -fno-sanitize-recover=all -g)
  target_link_options(server_flags INTERFACE -fsanitize=address,undefined)
endif()

# add_room(NAME sources... ): a static library of the server side.
function(add_room name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PUBLIC server_flags)
endfunction()

# add_static_program(NAME sources...): a program that runs inside a sandbox or starts one: static, small, no sanitizer.
function(add_static_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE common_flags tl::expected)
  target_compile_options(${name} PRIVATE -Os -ffunction-sections -fdata-sections -fno-pie)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/sandboxed)
  target_link_options(${name} PRIVATE -static -no-pie -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,noexecstack -s)
endfunction()
