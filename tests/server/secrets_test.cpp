// Files that hold keys and passwords are known by name, by where a link leads and by content.
#include "daemon/files/secrets.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "lsp/uri.h"
#include "tests/server/fake_editor.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;
using test::FakeEditor;
using Reason = Exclusions::Reason;

namespace {

/// In two pieces, so that no tool takes this file for one with a key.
const std::string kKey = std::string("-----BEGIN OPENSSH ") +
                         "PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END\n";

Reason reason_of(const std::string& path) { return Exclusions().judge(lsp::file_uri(path)).reason; }

}  // namespace

TEST_CASE("each name of a file with secrets is known") {
  for (const char* name : {".env",
                           ".env.local",
                           "prod.env",
                           "env.local",
                           "a.pem",
                           "tls.key",
                           "x.p12",
                           "x.pfx",
                           "x.jks",
                           "x.keystore",
                           "x.kdbx",
                           "x.ppk",
                           "x.asc",
                           "x.gpg",
                           "x.age",
                           "x.p8",
                           "x.ovpn",
                           "wg0.conf",
                           "id_rsa",
                           "id_ed25519",
                           "id_rsa.bak",
                           "my_id_rsa",
                           "deploy_key",
                           ".netrc",
                           "_netrc",
                           ".npmrc",
                           ".pypirc",
                           ".pgpass",
                           ".htpasswd",
                           ".git-credentials",
                           ".my.cnf",
                           ".mylogin.cnf",
                           ".vault-token",
                           ".vault_pass",
                           ".s3cfg",
                           ".boto",
                           "rclone.conf",
                           ".terraformrc",
                           "wp-config.php",
                           "database.yml",
                           "shadow",
                           "auth.json",
                           "kubeconfig",
                           "appsettings.Production.json",
                           "local.settings.json",
                           "credentials",
                           "credentials.json",
                           "credentials.yml",
                           "secrets.json",
                           "secrets.yaml",
                           "secrets.toml",
                           "secret.yaml",
                           "secrets.prod.yaml",
                           "secrets.yaml.bak",
                           "token",
                           "api_key.txt",
                           "password.txt",
                           "application_default_credentials.json",
                           "service-account.json",
                           "client_secret.json",
                           "main.tfvars",
                           "main.tfvars.json",
                           "terraform.tfstate",
                           "terraform.tfstate.backup",
                           ".bash_history",
                           ".psql_history",
                           ".docker/config.json",
                           ".m2/settings.xml",
                           ".gradle/gradle.properties",
                           ".config/gh/hosts.yml",
                           ".ssh/config",
                           ".gnupg/x/y",
                           ".aws/config",
                           ".kube/config",
                           ".password-store/a",
                           ".env~",
                           ".env_prod",
                           ".envrc",
                           ".dev.vars",
                           ".Renviron",
                           "x.kdb",
                           "wg-home.conf",
                           "private_key",
                           "vault_password.txt",
                           ".vault_pass.txt",
                           "htpasswd",
                           ".yarnrc.yml",
                           ".sentryclirc",
                           ".erlang.cookie",
                           ".terraform.d/credentials.tfrc.json",
                           "passwd.txt",
                           ".gitlab-token",
                           ".github_token",
                           "http_token",
                           "server.key~",
                           "id_rsa~",
                           ".netrc.bak",
                           ".npmrc.old.bak",
                           ".docker/config.json.orig",
                           ".config/efimd/key",
                           ".authinfo",
                           ".msmtprc",
                           ".smbcredentials",
                           ".databrickscfg",
                           "home.nmconnection",
                           ".zsh_history",
                           ".node_repl_history",
                           ".lesshst",
                           ".viminfo",
                           ".config/hub",
                           ".fly/config.yml",
                           ".netlify/config.json",
                           ".config/gcloud/access_tokens.db",
                           ".config/op/config",
                           ".config/doctl/config.yaml",
                           "SERVER.PEM"}) {
    INFO(name);
    CHECK(reason_of("/p/" + std::string(name)) == Reason::kSecret);
  }
}

TEST_CASE("ordinary code is no secret, and a folder's name makes none") {
  for (const char* name : {"id_map.cpp",        "id_generator.py",
                           "credentials.h",     "credentials_test.go",
                           "id_tools/a.py",     "credentials-service/main.go",
                           ".environment/a.py", "x.key/a.cpp",
                           "token.cpp",         "tokenizer.py",
                           "secrets.cpp",       "password.go",
                           "shadow.glsl",       "config.json",
                           "settings.xml",      "hosts.yml",
                           "database.py",       "env.ts",
                           "my.ssh/a.c",        "kube/config.go",
                           ".environment.ts",   ".envoy.py",
                           "private_key.rs",    "token_history.py",
                           "gcloud/a.py",       "op/config",
                           "next_token.py",     "key",
                           "token.py.bak",      "~"}) {
    INFO(name);
    CHECK(reason_of("/p/" + std::string(name)) == Reason::kNone);
  }
}

TEST_CASE("every pattern is in lower case, so that it can match") {
  for (const std::string_view pattern : secret_patterns()) {
    INFO(pattern);
    CHECK(std::ranges::none_of(pattern, [](char c) { return c >= 'A' && c <= 'Z'; }));
  }
}

TEST_CASE("a link to a secret is one, and so is a link into a folder of secrets") {
  const test::TempDir folder;
  std::ofstream(folder / ".env") << "KEY=1";
  std::filesystem::create_directory(folder / ".ssh");
  std::ofstream(folder / ".ssh/config") << "Host a";
  std::filesystem::create_symlink(folder / ".env", folder / "notes.txt");
  std::filesystem::create_directory_symlink(folder / ".ssh", folder / "hosts");
  CHECK(reason_of((folder / "notes.txt").string()) == Reason::kSecret);
  CHECK(reason_of((folder / "hosts/config").string()) == Reason::kSecret);
  CHECK(reason_of((folder / "other.txt").string()) == Reason::kNone);
}

TEST_CASE("a private key is known by its text, code that names its header is not") {
  CHECK_FALSE(secret_by_content(kKey).empty());
  CHECK_FALSE(secret_by_content("# a comment\r\n  " + kKey).empty());
  CHECK_FALSE(secret_by_content(std::string("-----BEGIN RSA ") +
                                "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n")
                  .empty());
  CHECK_FALSE(secret_by_content(std::string("-----BEGIN PGP ") +
                                "PRIVATE KEY BLOCK-----\n\nlQOYBF+abcdefghijklmnop\n")
                  .empty());
  CHECK_FALSE(secret_by_content("\xEF\xBB\xBF" + kKey).empty());
  CHECK_FALSE(secret_by_content("KEY = \"\"\"" + kKey + "\"\"\"\n").empty());
  CHECK(secret_by_content("constexpr char kHeader[] = \"-----BEGIN PRIVATE KEY-----\";\n").empty());
  CHECK(secret_by_content("-----BEGIN PRIVATE KEY-----\n  is how a key begins\n").empty());
  CHECK(secret_by_content("-----BEGIN CERTIFICATE-----\nMIIDazCCAlOgAwIBAgIUc\n").empty());
  CHECK(secret_by_content("-----BEGIN PRIVATE KEY-----").empty());
  CHECK(secret_by_content("").empty());
}

TEST_CASE("a private key in a string of one line is known, as in a service account's JSON") {
  const std::string header = std::string("-----BEGIN ") + "PRIVATE KEY-----";
  CHECK_FALSE(secret_by_content("{\n  \"private_key\": \"" + header +
                                R"(\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASC)" + "\"\n}\n")
                  .empty());
  CHECK_FALSE(
      secret_by_content("KEY=" + header + R"(\r\nMIIEvQIBADANBgkqhkiG9w0BAQEF\r\n)").empty());
  CHECK_FALSE(
      secret_by_content("key = '" + header + R"(\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES)").empty());
  CHECK(secret_by_content("key = \"" + header + R"(\n" + lines + "\n")").empty());
  CHECK(secret_by_content("key = \"" + header + R"(\n...\n";)").empty());
  CHECK(secret_by_content(R"("-----BEGIN CERTIFICATE-----\nMIIDazCCAlOgAwIBAgIUc\n")").empty());
}

TEST_CASE("a text made of headers is read once, however long its line is") {
  std::string text;
  while (text.size() < kScannedBytesMax) text += "-----BEGIN ";
  CHECK(secret_by_content(text).empty());
  CHECK_FALSE(secret_by_content(kKey + text).empty());
}

TEST_CASE("a file that is one access token is known by it, code with such words is not") {
  for (const char* prefix : {"ghp_", "glpat-", "hvs.", "AKIA", "eyJ"}) {
    INFO(prefix);
    const std::string token = prefix + std::string(24, 'a');
    CHECK_FALSE(secret_by_content(token + "\n").empty());
    CHECK(secret_by_content("const token = \"" + token + "\";\n").empty());
    CHECK(secret_by_content(prefix).empty());
  }
}

TEST_CASE("a key pasted into a document ends its completions, and none is stored or sent on") {
  FakeEditor editor;
  editor.initialize();
  editor.open("notes\n");
  REQUIRE(editor.host.opened.size() == 1);
  editor.change(2, test::range(1, 0, 1, 0), "more\n");
  // Recall has the text as it is, also if nobody asks there.
  REQUIRE(editor.host.revised.size() == 1);
  CHECK(editor.host.revised[0].second->bytes() == "notes\nmore\n");
  editor.change(3, test::range(1, 0, 1, 0), kKey);
  CHECK(editor.host.revised.size() == 1);
  CHECK(editor.host.closed.size() == 1);
  editor.complete(7, 1, 0);
  CHECK(editor.answer(7).at("result").at("items").empty());
  CHECK(editor.host.submitted.empty());
  CHECK(editor.sent("window/showMessage").empty());

  FakeEditor opening;
  opening.initialize();
  opening.open(kKey);
  CHECK(opening.host.opened.empty());
}
