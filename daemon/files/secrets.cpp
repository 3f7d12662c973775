#include "daemon/files/secrets.h"

#include <algorithm>
#include <array>
#include <optional>

#include "daemon/config/glob.h"

namespace efimd::service {

namespace {

// In lower case. With "/": the last parts of the path.
constexpr auto kPatterns = std::to_array<std::string_view>(
    {// Environments
     ".env", ".env[!a-z]*", ".envrc*", "*.env", "env.local", "env.production", ".dev.vars",
     ".renviron",
     // Keys and certificates
     "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.jks", "*.keystore", "*.kdb", "*.kdbx", "*.ppk",
     "*.asc", "*.gpg", "*.age", "*.ovpn", "wg[0-9]*.conf", "wg-*.conf", "private_key",
     "private-key", "*id_rsa", "*id_dsa", "*id_ecdsa", "*id_ed25519", "id_rsa[._-]*",
     "id_dsa[._-]*", "id_ecdsa[._-]*", "id_ed25519[._-]*", "deploy_key", "*_deploy_key",
     "deploy-key",
     // Passwords of programs
     ".netrc", "_netrc", ".authinfo", ".msmtprc", ".smbcredentials", ".databrickscfg",
     "*.nmconnection", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".git-credentials", ".my.cnf",
     ".mylogin.cnf", ".vault-token", ".vault_pass*", ".vault-pass*", "vault_pass*.txt",
     "vault-pass*.txt", ".s3cfg", ".boto", "htpasswd", ".yarnrc.yml", ".sentryclirc",
     ".erlang.cookie", "*.tfrc.json", "ngrok.yml", ".dockercfg", "rclone.conf", ".terraformrc",
     "terraform.rc", "wp-config.php", "database.yml", "shadow", "gshadow", "auth.json",
     "kubeconfig", "*.kubeconfig", "appsettings.production.json", "local.settings.json",
     // Files named after what they hold
     "credentials", "credentials.json", "credentials.y*ml", "credentials.toml", "credentials.ini",
     "credentials.csv", "credentials.xml", "credentials.txt", "credentials.properties",
     "credentials.db", "secret.json", "secrets.json", "secrets.*.json", "secret.y*ml",
     "secrets.y*ml", "secrets.*.y*ml", "secrets.y*ml.*", "secret.toml", "secrets.toml",
     "secrets.ini", "secret.txt", "secrets.txt", "password.txt", "passwords.txt", "passwd.txt",
     ".*-token", ".*_token", "http_token", "token", ".token", "token.txt", "*.token", "api_key",
     "api_key.txt", "api-key.txt", "apikey.txt", "application_default_credentials.json",
     "service-account*.json", "service_account*.json", "client_secret*.json", "*.tfvars",
     "*.tfvars.json", "*.tfstate", "*.tfstate.*",
     // What was typed
     ".*_history", ".lesshst", ".viminfo",
     // By the path's last parts
     ".docker/config.json", ".m2/settings.xml", ".gradle/gradle.properties", "gh/hosts.yml",
     ".config/hub", ".fly/config.yml", ".netlify/config.json", "efimd/key",
     // Folders that hold only secrets
     ".ssh", ".gnupg", ".aws", ".kube", ".password-store", ".azure", ".gcloud", ".config/gcloud",
     ".config/op", ".config/doctl"});
constexpr std::size_t kFolders = 10;

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20U) : static_cast<char>(c);
  });
  return out;
}

/// The name of what a file is a copy of: editors, tools and people leave "token~", ".netrc.bak".
std::string_view without_copy_endings(std::string_view path) {
  constexpr auto kEndings =
      std::to_array<std::string_view>({"~", ".bak", ".backup", ".old", ".orig", ".save", ".copy"});
  for (std::size_t i = 0; i < kEndings.size();)
    if (path.ends_with(kEndings[i])) {
      path.remove_suffix(kEndings[i].size());
      i = 0;
    } else {
      ++i;
    }
  return path;
}

bool matches(std::string_view pattern, std::string_view path, std::string_view name) {
  if (pattern.find('/') == std::string_view::npos) return glob_match(pattern, name);
  return path.ends_with(pattern) && path.size() > pattern.size() &&
         path[path.size() - pattern.size() - 1] == '/';
}

std::string_view stripped(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

/// "-----BEGIN RSA PRIVATE KEY-----", of PEM, OpenSSH, PGP and OpenVPN.
bool is_key_header(std::string_view line) {
  if (!line.starts_with("-----BEGIN ") || !line.ends_with("-----")) return false;
  const bool key = line.find(" PRIVATE KEY") != std::string_view::npos ||
                   line.find("OpenVPN Static key") != std::string_view::npos;
  return key && line.size() < 80;
}

/// The text that follows a header in a file of keys, but not in code that looks for such headers.
bool is_key_body(std::string_view line) {
  constexpr std::string_view kOfBase64 = "+/=";
  const bool named = line.find(": ") != std::string_view::npos;  // "Proc-Type: 4,ENCRYPTED"
  return named || (line.size() >= 16 && std::ranges::all_of(line, [&](char c) {
                     return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                            (c >= 'A' && c <= 'Z') || kOfBase64.find(c) != std::string_view::npos;
                   }));
}

/// Lines of a key file are short; no more of a line is looked at, however long it is.
constexpr std::size_t kKeyLineMax = 200;

/// The line that begins at `begin`, without blanks at its ends; nullopt if it is too long for a key.
std::optional<std::string_view> key_line(std::string_view text, std::size_t begin) {
  const std::string_view line = text.substr(std::min(begin, text.size()), kKeyLineMax);
  const std::size_t end = line.find('\n');
  if (end == line.npos && line.size() == kKeyLineMax) return std::nullopt;
  return stripped(line.substr(0, end));
}

/// A line of its own, or the first of a string of several lines.
bool begins_line(std::string_view text, std::size_t at) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF", kQuotes = "\"'`";
  while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t')) --at;
  return at == 0 || text[at - 1] == '\n' || text.substr(0, at) == kByteOrderMark ||
         kQuotes.find(text[at - 1]) != kQuotes.npos;
}

/// Whether a key follows the header at `at`.
bool begins_key(std::string_view text, std::size_t at) {
  const auto header = key_line(text, at);
  if (!header || !begins_line(text, at) || !is_key_header(*header)) return false;
  const std::size_t next = text.find('\n', at) + 1;  // npos + 1 is 0: no line follows
  const auto line = next > 0 ? key_line(text, next) : std::nullopt;
  if (!line || !line->empty()) return line && is_key_body(*line);
  const std::size_t second = text.find('\n', next) + 1;  // PGP has a blank line
  const auto after = second > 0 ? key_line(text, second) : std::nullopt;
  return after && is_key_body(*after);
}

/// Whether the header at `at` and its key are in a string whose line ends are written "\\n": clouds
/// give the keys of service accounts as JSON, under names that say nothing.
bool begins_key_in_string(std::string_view text, std::size_t at) {
  constexpr std::string_view kDashes = "-----", kLineEnd = "\\n";
  const std::string_view line = text.substr(at, kKeyLineMax);
  const std::size_t end = line.find(kDashes, kDashes.size());
  if (end == line.npos || !is_key_header(line.substr(0, end + kDashes.size()))) return false;
  std::string_view body = line.substr(end + kDashes.size());
  if (body.starts_with("\\r")) body.remove_prefix(2);
  if (!body.starts_with(kLineEnd)) return false;
  body.remove_prefix(kLineEnd.size());
  return is_key_body(body.substr(0, body.find('\\')));
}

bool holds_key(std::string_view text) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  for (std::size_t at = text.find(kBegin); at != text.npos; at = text.find(kBegin, at + 1))
    if (begins_key(text, at) || begins_key_in_string(text, at)) return true;
  return text.starts_with("PuTTY-User-Key-File-") || text.find("\nAGE-SECRET-KEY-1") != text.npos ||
         text.starts_with("AGE-SECRET-KEY-1");
}

bool is_token(std::string_view text) {
  constexpr auto kPrefixes = std::to_array<std::string_view>(
      {"ghp_",     "gho_",     "ghs_", "ghu_",    "ghr_", "github_pat_", "glpat-", "xoxb-",
       "xoxp-",    "xapp-",    "AKIA", "ASIA",    "hvs.", "npm_",        "pypi-",  "sk-",
       "sk_live_", "rk_live_", "SG.",  "dop_v1_", "AIza", "ya29.",       "eyJ"});
  constexpr std::size_t kTokenMin = 20, kTokenMax = 8192;
  const bool whole = text.size() >= kTokenMin && text.size() <= kTokenMax &&
                     text.find_first_of(" \t\r\n\"'(){}<>;") == std::string_view::npos;
  return whole && std::ranges::any_of(kPrefixes, [&](auto each) { return text.starts_with(each); });
}

}  // namespace

std::string secret_by_name(std::string_view given) {
  const std::string whole = lower_case(given);
  const std::span<const std::string_view> all = kPatterns;
  for (const std::string_view path : {std::string_view(whole), without_copy_endings(whole)}) {
    const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
    for (const std::string_view pattern : all.first(all.size() - kFolders))
      if (matches(pattern, path, name)) return std::string(pattern);
  }
  for (const std::string_view folder : all.last(kFolders))
    if (whole.find("/" + std::string(folder) + "/") != std::string::npos)
      return std::string(folder);
  return {};
}

std::string secret_by_content(std::string_view text) {
  text = text.substr(0, kScannedBytesMax);
  if (holds_key(text)) return "a private key in its text";
  if (is_token(stripped(text))) return "its text is an access token";
  return {};
}

std::span<const std::string_view> secret_patterns() { return kPatterns; }

}  // namespace efimd::service
