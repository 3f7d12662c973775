# Every dependency and what it is for; the table of docs/building.md says why each is here.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Boost 1.81 REQUIRED)                       # Asio: loop, local sockets, signals
find_package(nlohmann_json 3.11 REQUIRED)               # JSON-RPC bodies
find_package(CLI11 REQUIRED)                            # the command line
find_package(fmt REQUIRED)                               # text of messages
find_package(spdlog REQUIRED)                           # the log
find_package(tomlplusplus REQUIRED)                      # config.toml
find_package(tl-expected REQUIRED)                      # Result<T>
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)            # pre-tokenizer rules
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)            # page and model digests
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)               # the store's metadata
find_package(CURL 7.85 REQUIRED)                         # HTTP of efimd-get and efimd-http
find_package(OpenSSL REQUIRED)                          # SHA-256 of what it loads
if(EFIMD_TESTS)
  find_package(Catch2 REQUIRED)
endif()
