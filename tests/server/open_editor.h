#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "tests/server/fake_editor.h"

namespace efimd::test {

/// An editor that is initialized and has one document open.
struct OpenEditor : FakeEditor {
  explicit OpenEditor(const std::string& text, Json capabilities = Json::object()) {
    initialize(std::move(capabilities));
    open(text);
  }
  std::string text_of_last_request() {
    return std::string(last_submitted().request.snapshot->bytes());
  }
  /// The service's byte of the cursor at this position.
  std::size_t cursor_at(int line, int character) {
    complete(++asked_, line, character);
    return last_submitted().request.cursor;
  }

 private:
  int asked_ = 1000;
};

}  // namespace efimd::test
