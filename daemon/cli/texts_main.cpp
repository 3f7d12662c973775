// Prints what is installed beside efimd; run by the build, installed nowhere.
//   efimd_texts man | bash | zsh | fish | service PROGRAM | plain_service PROGRAM | http_service PROGRAM |
//     socket | launchd PROGRAM
#include <cstdio>
#include <string>
#include <string_view>

#include "daemon/cli/autostart.h"
#include "daemon/cli/texts.h"

int main(int argc, char** argv) {
  using namespace efimd::service;
  const std::string_view kind = argc > 1 ? argv[1] : "";
  const std::string program = argc > 2 ? argv[2] : "";
  std::string text = help_text(efimd_help(), kind);
  if (kind == "socket") text = socket_unit(kUserSocket);
  if (kind == "service" && !program.empty()) text = service_unit(program, Rights::kOwnUsers);
  if (kind == "plain_service" && !program.empty()) text = service_unit(program, Rights::kPlain);
  if (kind == "http_service" && !program.empty()) text = http_unit(program);
  if (kind == "launchd" && !program.empty()) text = launch_agent(program);
  std::fputs(text.c_str(), stdout);
  return text.empty() ? 2 : 0;
}
