// The softmaxes of a row's splits, joined one after another, with the same bits whoever joins them: what a compiler
// could contract is said to be precise.
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

// Takes the next, or one over nothing (kNone, 0), which changes no bit. What the values so far are to be multiplied with
// (x), and those of the next (y).
vec2 take(inout Joined all, float most, float sum) {
  const float raised = max(all.most, most);
  // Both in any case, not behind a branch, where later loads would wait for them.
  const float kept = exp(all.most - raised), joining = exp(most - raised);
  const vec2 shares = vec2(all.most == kNone ? 0 : kept, most == kNone ? 0 : joining);
  all = Joined(raised, join(all.sum, sum, shares));
  return shares;
}
