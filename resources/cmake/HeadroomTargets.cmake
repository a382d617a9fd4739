# SPDX-License-Identifier: Apache-2.0
# How every folder of the project becomes a target: one library a folder, the same warnings everywhere.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_program(HEADROOM_CCACHE ccache)
if(HEADROOM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Files that use compiled headers are kept too.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${HEADROOM_CCACHE})
endif()
# moc 6.4 cannot parse the concepts of the standard library; without the compiler's predefines it does not meet them.
set(CMAKE_AUTOMOC_COMPILER_PREDEFINES OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

add_library(headroom_options INTERFACE)
target_compile_options(headroom_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra> $<$<COMPILE_LANGUAGE:CXX>:-Wpedantic>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${HEADROOM_WERROR}>>:-Werror>)
# GCC 12 warns of overlaps and unset values inside its own headers (std::string, AVX-512): https://gcc.gnu.org/PR105651, PR105593.
target_compile_options(headroom_options INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-maybe-uninitialized>)
target_include_directories(headroom_options INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
if(HEADROOM_SANITIZER)
  add_compile_options(-fsanitize=${HEADROOM_SANITIZER} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HEADROOM_SANITIZER})
endif()

# headroom_library(NAME [PUBLIC libs...] [PRIVATE libs...]): the static library of the current folder, from all its .cpp files
# (sub-folders are libraries of their own unless named in FOLDERS).
function(headroom_library name)
  cmake_parse_arguments(ARG "" "" "PUBLIC;PRIVATE;FOLDERS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  foreach(folder ${ARG_FOLDERS})
    file(GLOB more CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.h)
    list(APPEND sources ${more})
  endforeach()
  set(compiled ${sources})
  list(FILTER compiled INCLUDE REGEX "\\.cpp$")
  if(compiled)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC headroom_options ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE headroom_options ${ARG_PUBLIC} ${ARG_PRIVATE})
  endif()
endfunction()
