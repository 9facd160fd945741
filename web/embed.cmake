# Writes OUT/web_table.cc, which takes the built files of the dashboard into the program. Run while
# building: cmake -D MODE=auto|on|off -D GIVEN=DIR -D NODE=… -D NPM=… -D SOURCE=web -D OUT=DIR -P this
cmake_minimum_required(VERSION 3.25)

# none(REASON): there will be no dashboard, which is an error if it was asked for.
function(none reason)
  if(MODE STREQUAL "on")
    message(FATAL_ERROR "SHIRABE_WEB=on, but there is no dashboard: ${reason}")
  endif()
  message(NOTICE "no dashboard, only the page without JavaScript: ${reason}")
endfunction()

# Builds into OUT/dist, in OUT alone; `result` is whether that worked.
function(build_with_npm result)
  set(${result} FALSE PARENT_SCOPE)
  file(COPY ${SOURCE}/package.json ${SOURCE}/package-lock.json DESTINATION ${OUT})
  get_filename_component(node_folder ${NODE} DIRECTORY)
  set(ENV{PATH} "${node_folder}:$ENV{PATH}")
  file(SHA256 ${SOURCE}/package-lock.json lock)
  set(installed "")
  if(EXISTS ${OUT}/node_modules/.installed)
    file(READ ${OUT}/node_modules/.installed installed)
  endif()
  if(NOT installed STREQUAL lock)
    execute_process(
      COMMAND ${NPM} ci --ignore-scripts --omit=dev --no-audit --no-fund --fetch-retries=1
              --fetch-timeout=20000 --loglevel=error
      WORKING_DIRECTORY ${OUT} TIMEOUT 300 RESULT_VARIABLE failed OUTPUT_QUIET)
    if(failed)
      none("npm ci has failed (${failed})")
      return()
    endif()
    file(WRITE ${OUT}/node_modules/.installed ${lock})
  endif()
  execute_process(COMMAND ${NODE} ${SOURCE}/build.mjs --out ${OUT}/dist
                          --modules ${OUT}/node_modules
                  WORKING_DIRECTORY ${OUT} TIMEOUT 300 RESULT_VARIABLE failed)
  if(failed)
    none("web/build.mjs has failed (${failed})")
    return()
  endif()
  set(${result} TRUE PARENT_SCOPE)
endfunction()

# Sets `dist` to the folder with the built files, or to nothing.
function(find_dist)
  set(dist "" PARENT_SCOPE)
  if(MODE STREQUAL "off")
    return()
  elseif(GIVEN)
    if(NOT EXISTS ${GIVEN}/index.html)
      message(FATAL_ERROR "SHIRABE_WEB_DIR=${GIVEN} has no index.html: it must hold what "
                          "web/build.mjs writes")
    endif()
    set(dist ${GIVEN} PARENT_SCOPE)
  elseif(EXISTS ${SOURCE}/dist/index.html)
    set(dist ${SOURCE}/dist PARENT_SCOPE)
  elseif(NOT NODE OR NOT NPM)
    none("there is no Node with npm in the PATH (deploy/setup.sh web installs one)")
  else()
    build_with_npm(built)
    if(built)
      set(dist ${OUT}/dist PARENT_SCOPE)
    endif()
  endif()
endfunction()

set(TYPES html "text/html" js "text/javascript" css "text/css" svg "image/svg+xml"
    json "application/json")
function(type_of file result)
  get_filename_component(extension ${file} LAST_EXT)
  string(SUBSTRING ${extension} 1 -1 extension)
  list(FIND TYPES ${extension} at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${file}: the dashboard has no files of this kind")
  endif()
  math(EXPR at "${at} + 1")
  list(GET TYPES ${at} type)
  set(${result} "${type}; charset=utf-8" PARENT_SCOPE)
endfunction()

# The bytes of a file, between two symbols.
function(incbin symbol file)
  string(APPEND assembly
         "asm(\".pushsection .rodata\\n\"\n    \".hidden ${symbol}_begin\\n\"\n"
         "    \".hidden ${symbol}_end\\n\"\n    \".globl ${symbol}_begin\\n\"\n"
         "    \".globl ${symbol}_end\\n\"\n    \"${symbol}_begin:\\n\"\n"
         "    \".incbin \\\"${file}\\\"\\n\"\n    \"${symbol}_end:\\n\"\n"
         "    \".byte 0\\n\"\n    \".popsection\\n\");\n"
         "extern \"C\" const char ${symbol}_begin[], ${symbol}_end[];\n")
  set(assembly "${assembly}" PARENT_SCOPE)
endfunction()

find_dist()
set(assembly "")
set(rows "")
set(files "")
if(dist)
  file(GLOB files ${dist}/index.html ${dist}/report.html ${dist}/assets/*)
  list(FILTER files EXCLUDE REGEX "\\.br$")
  list(SORT files)
endif()
set(number 0)
foreach(file ${files})
  math(EXPR number "${number} + 1")
  get_filename_component(name ${file} NAME)
  type_of(${file} type)
  file(SHA256 ${file} hash)
  incbin(shirabe_web_${number} ${file})
  set(brotli "{}")
  if(EXISTS ${file}.br)
    incbin(shirabe_web_${number}_br ${file}.br)
    set(brotli "Between(shirabe_web_${number}_br_begin, shirabe_web_${number}_br_end)")
  endif()
  string(APPEND rows "      {\"${name}\", \"${type}\",\n       \"${hash}\",\n"
         "       Between(shirabe_web_${number}_begin, shirabe_web_${number}_end),\n"
         "       ${brotli}},\n")
endforeach()
file(CONFIGURE OUTPUT ${OUT}/web_table.cc @ONLY CONTENT [=[
// Written by web/embed.cmake.
#include "service/http/web_files.h"

@assembly@
namespace shirabe::service {
namespace {

[[maybe_unused]] std::string_view Between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

const std::vector<WebFile>& WebFiles() {
  static const std::vector<WebFile> files = {
@rows@  };
  return files;
}

}  // namespace shirabe::service
]=])
file(TOUCH ${OUT}/web_table.cc)
