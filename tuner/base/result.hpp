// The outcome of something that can fail: a value, or an Error whose text a user can act on.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace rdmatune {

/// Why something failed. `message` names the file, line, device or node, what was expected and
/// what to do; it has no trailing newline and no "error:" prefix.
struct Error {
    std::string message;
};

/// A value of type T, or an Error. Never throws by itself; reading the wrong side is a
/// programming error and throws std::bad_variant_access.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    [[nodiscard]] bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }
    [[nodiscard]] T& value() & { return std::get<0>(state_); }
    [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
    [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

  private:
    std::variant<T, Error> state_;
};

/// Success without a value.
struct Done {};
using Status = Result<Done>;

/// The same error with a context in front: "context: message".
inline Error within(std::string_view context, const Error& inner) {
    return Error{std::string(context) + ": " + inner.message};
}

}  // namespace rdmatune
