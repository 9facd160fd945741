# For the preset arm64: Debian's cross compiler for arm64, and its libraries for arm64. protoc and
# grpc_cpp_plugin are programs of the machine that builds. deploy/setup.sh arm64 makes a root that
# has all of them, in which deploy/arm64/inside.sh runs cmake.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(PKG_CONFIG_EXECUTABLE /usr/bin/aarch64-linux-gnu-pkg-config CACHE FILEPATH "pkg-config")
