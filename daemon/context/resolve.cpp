#include "daemon/context/resolve.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "daemon/context/conventions.h"

namespace efimd::context {

namespace {

using syntax::Grammar;
using syntax::Import;

/// Files of one package that one import may mean.
constexpr std::size_t kPackageFilesMax = 24;

std::vector<std::string> split(std::string_view text, std::string_view by) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(by, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + by.size();
  }
  return parts;
}

std::string path_of(const std::vector<std::string>& parts, std::size_t count) {
  std::string path;
  for (std::size_t i = 0; i < std::min(count, parts.size()); ++i)
    path += (path.empty() ? "" : "/") + parts[i];
  return path;
}

class Resolver {
 public:
  Resolver(std::string_view from, Grammar grammar, const ProjectPaths& project)
      : from_(from), folder_(folder_of(from)), grammar_(grammar), project_(project) {}

  std::vector<UsedFile> resolve(const std::vector<Import>& imports) {
    const bool has_package = grammar_ == Grammar::kGo || grammar_ == Grammar::kJava;
    // Imports of large packages leave room for the text's own.
    if (has_package) room_ -= package_of(folder_).size();
    for (const Import& import : imports) {
      why_ = "imported as " + import.what;
      follow(import);
    }
    // Of these only what the text mentions is shown, so that tests and the like do no harm.
    if (has_package) {
      room_ = kUsedFilesMax;
      why_ = "of the same package";
      is_beside_ = true;
      add_package(folder_, {});
      if (const auto tested = tested_folder(folder_); !tested.empty()) add_package(tested, {});
    }
    return std::move(found_);
  }

 private:
  void follow(const Import& import) {
    switch (grammar_) {
      case Grammar::kC:
      case Grammar::kCpp:
        return follow_include(import);
      case Grammar::kPython:
        return follow_python(import);
      case Grammar::kGo:
        return follow_go(import);
      case Grammar::kRust:
        return follow_rust(import);
      case Grammar::kTypescript:
      case Grammar::kTsx:
        return follow_script(import);
      case Grammar::kJava:
        return follow_java(import);
      case Grammar::kNone:
        return;
    }
  }

  /// False if the project has no such file.
  bool add(std::string_view path, const std::vector<std::string>& names) {
    if (!project_.has(path)) return false;
    const auto known = std::ranges::find(found_, path, &UsedFile::path);
    if (known != found_.end()) {
      // Imported twice: all that either names.
      if (names.empty()) known->names.clear();
      if (!known->names.empty())
        known->names.insert(known->names.end(), names.begin(), names.end());
      return true;
    }
    if (path != from_ && found_.size() < room_)
      found_.push_back({std::string(path), why_, names, is_beside_});
    return true;
  }

  bool add_first(const std::vector<std::string>& paths, const std::vector<std::string>& names) {
    return std::ranges::any_of(paths, [&](const std::string& path) { return add(path, names); });
  }

  /// Of several files that end so, the one that is nearest to the importing one.
  std::optional<std::string_view> nearest(const std::vector<std::string_view>& paths) const {
    if (paths.empty()) return std::nullopt;
    return *std::ranges::max_element(paths, {}, [&](std::string_view path) {
      return std::ranges::mismatch(path, from_).in1 - path.begin();
    });
  }

  bool add_nearest(std::string_view end, const std::vector<std::string>& names) {
    const auto path = nearest(project_.ending_with(end));
    return path && add(*path, names);
  }

  /// The files of that folder in the text's language, but for tests.
  std::vector<std::string_view> package_of(std::string_view folder) const {
    std::vector<std::string_view> files = project_.in_folder(folder);
    std::erase_if(files, [&](std::string_view path) {
      return syntax::grammar_of(path) != grammar_ || path.ends_with("_test.go");
    });
    if (files.size() > kPackageFilesMax) files.resize(kPackageFilesMax);
    return files;
  }

  void add_package(std::string_view folder, const std::vector<std::string>& names) {
    for (const std::string_view path : package_of(folder)) add(path, names);
  }

  void follow_include(const Import& import) {
    if (import.kind == Import::Kind::kQuoted &&
        add_first({joined(folder_, import.what), joined(project_.root(), import.what)}, {}))
      return;
    // <string.h> is the system's, even if the project has a file of that name somewhere.
    std::vector<std::string_view> paths = project_.ending_with(import.what);
    if (import.kind == Import::Kind::kSystem)
      std::erase_if(paths, [&](std::string_view path) {
        constexpr auto kRoots = std::to_array<std::string_view>({"include", "inc", "src", "lib"});
        const std::string_view root = path.substr(0, path.size() - import.what.size() - 1);
        return root != project_.root() && std::ranges::find(kRoots, name_of(root)) == kRoots.end();
      });
    if (const auto path = nearest(paths)) add(*path, {});
  }

  void follow_python(const Import& import) {
    std::string_view what = import.what;
    std::size_t dots = 0;
    while (what.starts_with('.')) {
      what.remove_prefix(1);
      ++dots;
    }
    const std::vector<std::string> parts = split(what, ".");
    const std::string inside = path_of(parts, parts.size());
    if (dots > 0) {
      std::string_view base = folder_;
      for (std::size_t up = 1; up < dots; ++up) base = folder_of(base);
      return add_python(parts.empty() ? std::string(base) : joined(base, inside), import.names);
    }
    // A package's root is a folder without __init__.py; there may be several of that name. Before the
    // standard library come only the folder of a program and that from which it is run.
    const bool is_standard = !parts.empty() && is_standard_in_python(parts.front());
    for (const std::string& end : {inside + ".py", inside + ".pyi", inside + "/__init__.py"}) {
      std::vector<std::string_view> paths = project_.ending_with(end);
      std::erase_if(paths, [&](std::string_view path) {
        const std::string root(path.substr(0, path.size() - end.size()));
        const std::string_view folder = folder_of(root);
        return project_.has(root + "__init__.py") ||
               (is_standard && folder != folder_ && folder != project_.root());
      });
      const auto path = nearest(paths);
      if (!path) continue;
      const std::size_t ending = end.size() - inside.size();
      return add_python(std::string(path->substr(0, path->size() - ending)), import.names);
    }
  }

  /// `module` is a path without its ending. A name of a package may be a module of its own.
  void add_python(const std::string& module, const std::vector<std::string>& names) {
    std::vector<std::string> rest;
    for (const std::string& name : names) {
      const std::string inside = joined(module, name);
      if (!add_first({inside + ".py", inside + "/__init__.py"}, {})) rest.push_back(name);
    }
    if (names.empty() || !rest.empty())
      add_first({module + ".py", module + ".pyi", module + "/__init__.py"}, rest);
  }

  void follow_go(const Import& import) {
    if (const auto place = project_.in_package("go.mod", import.what))
      return add_package(joined(place->folder, place->rest), {});
    if (project_.has_packages("go.mod")) return;
    const std::vector<std::string> parts = split(import.what, "/");
    // The standard library's paths have no host in front.
    if (parts.empty() || parts[0].find('.') == std::string::npos) return;
    for (std::size_t skipped = 1; skipped < parts.size(); ++skipped) {
      const std::string end = path_of(
          {parts.begin() + static_cast<std::ptrdiff_t>(skipped), parts.end()}, parts.size());
      for (const std::string_view folder : project_.folders_ending_with(end))
        // A module lies at the project's root or, with others, in a folder of its own.
        if (skipped + 1 < parts.size() || folder == project_.root() ||
            folder_of(folder) == project_.root())
          return add_package(folder, {});
    }
  }

  void follow_rust(const Import& import) {
    // The folder of the text's child modules.
    const std::string_view name = name_of(from_);
    const bool is_root = name == "mod.rs" || name == "lib.rs" || name == "main.rs";
    const std::string own =
        is_root ? std::string(folder_) : std::string(from_.substr(0, from_.size() - 3));
    if (import.kind == Import::Kind::kChild) {
      // Programs, tests and examples are roots of crates, too: their modules are files beside them.
      for (const std::string& folder : {own, std::string(folder_)})
        if (add_rust_modules(folder, {import.what})) return;
      return;
    }
    std::vector<std::string> parts = split(import.what, "::");
    if (!parts.empty() && parts.back() == "self") parts.pop_back();
    if (parts.empty()) return;
    const std::string first = parts.front();
    if (first == "std" || first == "core" || first == "alloc") return;
    parts.erase(parts.begin());
    if (first == "self") return add_rust(own, parts);
    if (first == "super") {
      std::string_view above = folder_of(own);
      while (!parts.empty() && parts.front() == "super") {
        above = folder_of(above);
        parts.erase(parts.begin());
      }
      return add_rust(std::string(above), parts);
    }
    if (first == "crate") {
      std::string_view crate = folder_;
      while (!crate.empty() && !project_.has(std::string(crate) + "/lib.rs") &&
             !project_.has(std::string(crate) + "/main.rs"))
        crate = folder_of(crate);
      return add_rust(std::string(crate.empty() ? folder_ : crate), parts);
    }
    // Another crate of the workspace.
    if (const auto place = project_.in_package("Cargo.toml", first))
      return add_rust(joined(place->folder, "src"), parts);
    std::string dashed = first;
    std::ranges::replace(dashed, '_', '-');
    for (const std::string& crate : {first, dashed})
      if (const auto lib = nearest(project_.ending_with(crate + "/src/lib.rs")))
        return add_rust(std::string(folder_of(*lib)), parts);
    // Or a module that is in scope.
    parts.insert(parts.begin(), first);
    add_rust_modules(own, parts);
  }

  /// As much of `parts` as modules have files for; the rest are names in the last of them.
  bool add_rust_modules(const std::string& base, const std::vector<std::string>& parts) {
    for (std::size_t count = parts.size(); count > 0; --count) {
      const std::string module = base + "/" + path_of(parts, count);
      const std::vector<std::string> names(parts.begin() + static_cast<std::ptrdiff_t>(count),
                                           parts.end());
      if (add_first({module + ".rs", module + "/mod.rs"}, names)) return true;
    }
    return false;
  }

  /// The same; if there is no such module they are names in that of `base`.
  void add_rust(const std::string& base, const std::vector<std::string>& parts) {
    if (!add_rust_modules(base, parts) && !parts.empty())
      add_first({base + ".rs", base + "/mod.rs", base + "/lib.rs", base + "/main.rs"},
                {parts.front()});
  }

  void follow_script(const Import& import) {
    if (import.what.starts_with('.'))
      return void(add_script(joined(folder_, import.what), import.names));
    for (const std::string& path : project_.by_alias(folder_, import.what))
      if (add_script(path, import.names)) return;
    if (const auto place = project_.in_package("package.json", import.what);
        place && add_script_below(place->folder, place->rest, import.names))
      return;
    // What settings usually say: "@/a" is in the package's folder of sources, and so may "a/b" be.
    std::string_view what = import.what;
    for (const std::string_view alias : {"@/", "~/", "#/", "$lib/"})
      if (what.starts_with(alias)) what.remove_prefix(alias == "$lib/" ? 1 : alias.size());
    if (what == import.what && (what.starts_with('@') || what.find('/') == std::string_view::npos))
      return;
    const std::string& root = project_.root();
    for (std::string_view up = folder_; up.size() >= root.size(); up = folder_of(up)) {
      const bool is_package = up == root || project_.has(joined(up, "package.json")) ||
                              project_.has(joined(up, "tsconfig.json")) ||
                              project_.has(joined(up, "jsconfig.json"));
      if (is_package && add_script_below(up, what, import.names)) return;
      if (up.empty()) return;
    }
  }

  /// In one of the folders that packages usually have their sources in.
  bool add_script_below(std::string_view package, std::string_view path,
                        const std::vector<std::string>& names) {
    for (const std::string_view folder : {"src", "", "app", "lib"})
      if (add_script(joined(joined(package, folder), path), names)) return true;
    return false;
  }

  bool add_script(const std::string& path, const std::vector<std::string>& names) {
    if (add(path, names)) return true;
    constexpr auto kEndings = std::to_array<std::string_view>(
        {".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mts", ".cts", ".mjs", ".cjs"});
    // "./a.js" may mean a.ts.
    std::vector<std::string> bases = {path};
    const std::size_t dot = path.rfind('.');
    if (dot != std::string::npos && path.substr(dot).find("js") != std::string::npos)
      bases.push_back(path.substr(0, dot));
    for (const std::string& base : bases)
      for (const std::string& front : {base, base + "/index"})
        for (const std::string_view ending : kEndings)
          if (add(front + std::string(ending), names)) return true;
    return false;
  }

  void follow_java(const Import& import) {
    std::vector<std::string> parts = split(import.what, ".");
    if (!parts.empty() && parts.back() == "*") {
      const std::string end = path_of(parts, parts.size() - 1);
      const auto folders = project_.folders_ending_with(end);
      is_beside_ = true;  // of a whole package, what the text mentions
      if (const auto folder = nearest(folders)) add_package(*folder, {});
      is_beside_ = false;
      return;
    }
    // A nested class or a static member lies in its class's file.
    for (std::size_t count = parts.size(); count > 1; --count)
      if (add_nearest(path_of(parts, count) + ".java", {})) return;
  }

  const std::string_view from_, folder_;
  const Grammar grammar_;
  const ProjectPaths& project_;
  std::vector<UsedFile> found_;
  std::size_t room_ = kUsedFilesMax;
  std::string why_;
  bool is_beside_ = false;
};

}  // namespace

std::vector<UsedFile> used_files(const std::vector<Import>& imports, std::string_view from,
                                 Grammar grammar, const ProjectPaths& project) {
  return Resolver(from, grammar, project).resolve(imports);
}

}  // namespace efimd::context
