#include "daemon/models/config_watch.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/small_file.h"
#include "daemon/models/chosen_model.h"

namespace efimd::service {

namespace {

/// What the file's own reader says of it, without what that does then.
ConfigWarning trouble_of(const Config& malformed) {
  ConfigWarning trouble = malformed.warnings.front();
  trouble.message.resize(std::min(trouble.message.rfind(';'), trouble.message.size()));
  trouble.message += "; the daemon goes on with what it read before";
  return trouble;
}

class ConfigWatch {
 public:
  ConfigWatch(Paths paths, Config config)
      : paths_(std::move(paths)),
        config_(std::move(config)),
        judged_(state_of_file(paths_.config_file)) {}

  ConfigLook look() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return {Found::kBeingWritten};
    std::string state = state_of_file(paths_.config_file);
    if (state == judged_) return last_;
    // Editors empty a file before they write it, or take it away and put another there.
    if (last_seen_ != state) {
      last_seen_ = std::move(state);
      return {Found::kBeingWritten};
    }
    last_ = judge(!state.empty());
    judged_ = std::move(state);
    return last_;
  }

 private:
  using Found = ConfigLook::Found;

  ConfigLook judge(bool is_there) const {
    if (is_there && !std::ifstream(paths_.config_file).is_open()) return {};
    const Config now = config_in_force(paths_);
    if (now == config_) return {};
    if (!is_there || now.file_read) return {Found::kOther};
    return {Found::kMalformed, trouble_of(now)};
  }

  const Paths paths_;
  const Config config_;
  std::mutex mutex_;
  std::string judged_;  ///< the state that last_ was found in
  std::optional<std::string> last_seen_;
  ConfigLook last_;
};

}  // namespace

std::function<ConfigLook()> watch_config(const Paths& paths, Config config) {
  return
      [watch = std::make_shared<ConfigWatch>(paths, std::move(config))] { return watch->look(); };
}

}  // namespace efimd::service
