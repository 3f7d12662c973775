#include "daemon/cli/autostart.h"

#include <fmt/format.h>

#include <string_view>

namespace efimd::service {

namespace {

/// Each of `special` twice.
std::string doubled(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) result.append(special.find(c) == std::string_view::npos ? 1 : 2, c);
  return result;
}

/// As systemd wants words with blanks, quotes or percents. `special`: what else begins something there.
std::string unit_word(std::string_view text, std::string_view special) {
  std::string word = "\"";
  for (const char c : doubled(text, special)) {
    if (c == '"' || c == '\\') word += '\\';
    word += c;
  }
  return word + "\"";
}

std::string command_word(const std::filesystem::path& path) {
  return unit_word(path.string(), "%$");
}

std::string environment_lines(const UnitEnvironment& environment) {
  std::string lines;
  for (const auto& [name, value] : environment)
    lines += fmt::format("Environment={}\n", unit_word(fmt::format("{}={}", name, value), "%"));
  return lines;
}

std::string xml_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else
      escaped += c;
  }
  return escaped;
}

}  // namespace

std::string service_unit(const std::filesystem::path& program, Rights rights,
                         const UnitEnvironment& environment) {
  // A plain manager ignores what needs namespaces of mounts; with users of its own, it gives up.
  constexpr char kOwn[] =
      R"(# Users of its own: so a user's manager may take the capabilities that programs could still gain, too.
PrivateUsers=yes
CapabilityBoundingSet=
# Where the system gives users no namespaces (217, 218, 225, 226), the other unit takes over at once.
RestartPreventExitStatus=217 218 225 226
)";
  constexpr char kPlain[] =
      R"(# A user's manager ignores what it cannot do. Not so CapabilityBoundingSet= and what implies it, and not so
# ProtectKernelTunables= in a container: then the daemon would not start. A user's processes have no capabilities,
# NoNewPrivileges keeps it so, and landlock lets the daemon write nothing under /proc and /sys.
IPAddressDeny=any
PrivateMounts=yes
ProtectControlGroups=yes
ProtectProc=invisible
ProtectSystem=full
)";
  const bool own = rights == Rights::kOwnUsers;
  return fmt::format(
      R"([Unit]
Description=efimd: inline code completions from a model on this machine{}
Documentation=man:efimd(1)
Requires={}
Wants={}
{}# Idle daemons and people start it now and then; one that fails at each start is given up.
StartLimitIntervalSec=30
StartLimitBurst=30

[Service]
ExecStart={} serve --background
{}{}Restart=on-failure
RestartSec=1
UMask=0077
# What the daemon has no need of, from its first instruction on; it gives up more by itself (daemon.sandbox).
# Nothing here hides /home, /tmp and devices: projects lie there, and GPUs, whose drivers also write programs into memory.
{}KeyringMode=private
LimitCORE=0
LockPersonality=yes
NoNewPrivileges=yes
PrivateNetwork=yes
ProtectHostname=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service seccomp landlock_add_rule landlock_create_ruleset landlock_restrict_self
SystemCallFilter=~@privileged
TasksMax=512
)",
      own ? "" : ", without namespaces", kSocketUnit, kHttpUnit,
      own ? fmt::format("OnFailure={}\n", kPlainUnit) : std::string(), command_word(program),
      environment_lines(environment),
      own ? std::string() : fmt::format("Sockets={}\n", kSocketUnit), own ? kOwn : kPlain);
}

std::string http_unit(const std::filesystem::path& program, const UnitEnvironment& environment) {
  return fmt::format(R"([Unit]
Description=efimd: completions over HTTP, and an engine elsewhere
Documentation=man:efimd(1)

[Service]
# It ends at once if config.toml wants neither.
ExecStart={} --if-wanted
{}Restart=on-failure
RestartSec=1
UMask=0077
KeyringMode=private
LimitCORE=0
LockPersonality=yes
NoNewPrivileges=yes
ProtectHostname=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service seccomp landlock_add_rule landlock_create_ruleset landlock_restrict_self
SystemCallFilter=~@privileged
)",
                     command_word(program.parent_path() / "efimd-http"),
                     environment_lines(environment));
}

std::string socket_path(const std::filesystem::path& socket) {
  return doubled(socket.string(), "%");
}

std::string socket_unit(const std::string& socket) {
  return fmt::format(R"([Unit]
Description=efimd: the socket that editors connect to
Documentation=man:efimd(1)

[Socket]
ListenStream={}
SocketMode=0600
DirectoryMode=0700

[Install]
WantedBy=sockets.target
)",
                     socket);
}

std::string launch_agent(const std::filesystem::path& program) {
  return fmt::format(R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>{}</string>
  <key>ProgramArguments</key>
  <array><string>{}</string><string>serve</string><string>--background</string></array>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ProcessType</key><string>Interactive</string>
</dict>
</plist>
)",
                     kLaunchLabel, xml_text(program.string()));
}

}  // namespace efimd::service
