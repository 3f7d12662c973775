// The softmaxes of a row's splits, joined one after another. Every shader that joins them gets the
// same bits, because everything that a compiler could contract is declared precise.
const float kNone = -1.0 / 0.0;
struct Joined { float most, sum; };

float join(float value, float next, vec2 shares) {
  precise const float kept = value * shares.x;
  precise const float joined = fma(next, shares.y, kept);
  return joined;
}

vec4 join(vec4 values, vec4 next, vec2 shares) {
  precise const vec4 kept = values * shares.x;
  precise const vec4 joined = fma(next, vec4(shares.y), kept);
  return joined;
}

// Takes the next, or one over nothing (kNone, 0), which changes no bit. The factors of the values
// so far (x) and of the next ones (y).
vec2 take(inout Joined all, float most, float sum) {
  const float raised = max(all.most, most);
  // Both are computed in any case, because later loads would wait for a branch.
  const float kept = exp(all.most - raised), joining = exp(most - raised);
  const vec2 shares = vec2(all.most == kNone ? 0 : kept, most == kNone ? 0 : joining);
  all = Joined(raised, join(all.sum, sum, shares));
  return shares;
}
