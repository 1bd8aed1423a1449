// Where a value of a feature stands on its track, and which value stands at a place.

const STEPS = 200;

/** A track from 0 to `steps`: linear, or symlog for numbers that are mostly small. */
export function scaleOf(feature) {
  if (feature.kind !== "number") return ofLevels(feature);
  const { low, high } = endsOf(feature);
  const unit = Math.max(feature.step ?? 0, (high - low) / 1000) || 1;
  const bend = feature.scale === "symlog" ? (v) => Math.sign(v) * Math.log1p(Math.abs(v) / unit) : (v) => v;
  const back = feature.scale === "symlog" ? (w) => Math.sign(w) * Math.expm1(Math.abs(w)) * unit : (w) => w;
  const [from, to] = [bend(low), bend(high)];
  const share = (value) => (to > from ? Math.min(1, Math.max(0, (bend(value) - from) / (to - from))) : 0.5);
  const steps = feature.integer && feature.scale !== "symlog" && high - low <= 2 * STEPS ? Math.max(1, high - low) : STEPS;
  const at = (place) => {
    if (place <= 0) return low;
    return place >= steps ? high : neat(feature, back(from + ((to - from) * place) / steps), low, high);
  };
  return { low, high, steps, share, place: (value) => Math.round(share(value) * steps), at, smallest: smallest(feature, low, high) };
}

function endsOf(feature) {
  const edges = feature.marginal?.edges;
  const low = feature.minimum ?? edges?.[0] ?? 0;
  return { low, high: feature.maximum ?? edges?.at(-1) ?? low + 1 };
}

function smallest(feature, low, high) {
  if (feature.step) return feature.step;
  if (feature.integer) return 1;
  return 10 ** -(feature.decimals ?? Math.max(0, 3 - Math.floor(Math.log10(high - low || 1))));
}

/** Rounded to what a person would say: round numbers on wide tracks, multiples of the step where there is one. */
function neat(feature, value, low, high) {
  const wide = 10 ** Math.floor(Math.log10(feature.scale === "symlog" ? Math.abs(value) / 20 || 1 : (high - low) / STEPS || 1));
  const unit = Math.max(wide, smallest(feature, low, high));
  const rounded = Number((Math.round(value / unit) * unit).toPrecision(12));
  return Math.min(high, Math.max(low, rounded));
}

function ofLevels(feature) {
  const last = Math.max(1, feature.levels.length - 1);
  const index = (value) => feature.levels.findIndex((level) => level.value === value);
  return {
    low: feature.levels[0]?.value, high: feature.levels.at(-1)?.value, steps: last, smallest: 1,
    share: (value) => Math.max(0, index(value)) / last, place: index, at: (place) => feature.levels[place].value,
  };
}
