// Limits on the speed at which an autoscaler changes the number of replicas: bounds, stabilization windows and policies
// of `spec.behavior` (horizontal.go of kube-controller-manager, KEP-853). Pure.

export interface ScalingPolicy {
  readonly type: 'Pods' | 'Percent'
  readonly value: number
  readonly periodSeconds: number
}

export interface ScalingRules {
  readonly stabilizationWindowSeconds?: number
  readonly selectPolicy?: 'Max' | 'Min' | 'Disabled'
  readonly policies?: readonly ScalingPolicy[]
}

export interface Behavior {
  readonly scaleUp?: ScalingRules
  readonly scaleDown?: ScalingRules
}

/** Recent recommendations and changes of one autoscaler. Kept in memory, as in Kubernetes: empty after a restart. */
export interface ScalingHistory {
  readonly recommendations: readonly { readonly atMs: number; readonly replicas: number }[]
  /** Changes: positive up, negative down. */
  readonly changes: readonly { readonly atMs: number; readonly by: number }[]
}

export const noHistory: ScalingHistory = { recommendations: [], changes: [] }

export interface Limited {
  readonly replicas: number
  /** The history with this recommendation, without entries that no rule needs any more. */
  readonly history: ScalingHistory
  /** Condition ScalingLimited. */
  readonly limited: { readonly is: boolean; readonly reason: string; readonly message: string }
  /** Condition AbleToScale, where a window holds the number back. */
  readonly stabilized?: { readonly reason: string; readonly message: string }
}

const defaultUp: Required<ScalingRules> = {
  stabilizationWindowSeconds: 0,
  selectPolicy: 'Max',
  policies: [
    { type: 'Pods', value: 4, periodSeconds: 15 },
    { type: 'Percent', value: 100, periodSeconds: 15 },
  ],
}
const defaultDown: Required<ScalingRules> = {
  stabilizationWindowSeconds: 300,
  selectPolicy: 'Max',
  policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }],
}

export interface LimitInput {
  readonly current: number
  /** The number that the metrics ask for. */
  readonly desired: number
  readonly min: number
  readonly max: number
  readonly behavior: Behavior | undefined
  readonly history: ScalingHistory
  readonly nowMs: number
}

/** The number of replicas that the rules allow now. */
export function limitReplicas(input: LimitInput): Limited {
  const { current, desired, min, max, nowMs, history: before } = input
  const up = { ...defaultUp, ...input.behavior?.scaleUp }
  const down = { ...defaultDown, ...input.behavior?.scaleDown }
  const rules = [up, down]
  const longestMs = Math.max(...rules.map(({ stabilizationWindowSeconds }) => stabilizationWindowSeconds)) * 1000
  // The first recommendation after a start is the number that is there: nothing shrinks because we have just begun.
  const known = before.recommendations.length > 0 ? before.recommendations : [{ atMs: nowMs, replicas: current }]
  const recommendations = known.filter(({ atMs }) => nowMs - atMs <= longestMs)
  const stable = stabilize(desired, current, recommendations, { up, down, nowMs })
  const periods = rules.flatMap(({ policies }) => policies.map(({ periodSeconds }) => periodSeconds))
  const history = {
    recommendations: [...recommendations, { atMs: nowMs, replicas: desired }],
    changes: before.changes.filter(({ atMs }) => nowMs - atMs <= Math.max(15, ...periods) * 1000),
  }
  const rate = withinRate(stable, { ...input, history, up, down })
  const replicas = Math.max(rate.replicas, 0)
  const stabilized =
    stable === desired
      ? {}
      : {
          stabilized: {
            reason: stable > desired ? 'ScaleDownStabilized' : 'ScaleUpStabilized',
            message: `recent recommendations were ${stable > desired ? 'higher' : 'lower'} than current one, applying the ${stable > desired ? 'highest' : 'lowest'} recent recommendation`,
          },
        }
  return { replicas: Math.min(Math.max(replicas, min), max), history, limited: rate.limited, ...stabilized }
}

function stabilize(
  desired: number,
  current: number,
  recommendations: ScalingHistory['recommendations'],
  { up, down, nowMs }: { up: Required<ScalingRules>; down: Required<ScalingRules>; nowMs: number },
): number {
  const within = (seconds: number): number[] =>
    recommendations.filter(({ atMs }) => nowMs - atMs < seconds * 1000).map(({ replicas }) => replicas)
  const lowest = Math.min(desired, ...within(up.stabilizationWindowSeconds))
  const highest = Math.max(desired, ...within(down.stabilizationWindowSeconds))
  if (current < lowest) return lowest
  return current > highest ? highest : current
}

function withinRate(
  desired: number,
  {
    current,
    min,
    max,
    history,
    up,
    down,
    nowMs,
  }: LimitInput & { up: Required<ScalingRules>; down: Required<ScalingRules> },
): Pick<Limited, 'replicas' | 'limited'> {
  if (desired > current) {
    const most = upLimit(current, history.changes, up, nowMs)
    if (desired > most && most < max)
      return limited(most, 'ScaleUpLimit', 'the desired replica count is increasing faster than the maximum scale rate')
    if (desired > max)
      return limited(max, 'TooManyReplicas', 'the desired replica count is more than the maximum replica count')
  } else if (desired < current) {
    const least = downLimit(current, history.changes, down, nowMs)
    if (desired < least && least > min)
      return limited(
        least,
        'ScaleDownLimit',
        'the desired replica count is decreasing faster than the maximum scale rate',
      )
    if (desired < min)
      return limited(min, 'TooFewReplicas', 'the desired replica count is less than the minimum replica count')
  } else if (desired > max)
    return limited(max, 'TooManyReplicas', 'the desired replica count is more than the maximum replica count')
  else if (desired < min)
    return limited(min, 'TooFewReplicas', 'the desired replica count is less than the minimum replica count')
  const message = 'the desired count is within the acceptable range'
  return { replicas: desired, limited: { is: false, reason: 'DesiredWithinRange', message } }
}

function limited(replicas: number, reason: string, message: string): Pick<Limited, 'replicas' | 'limited'> {
  return { replicas, limited: { is: true, reason, message } }
}

function upLimit(
  current: number,
  changes: ScalingHistory['changes'],
  rules: Required<ScalingRules>,
  nowMs: number,
): number {
  if (rules.selectPolicy === 'Disabled') return current
  const limits = rules.policies.map(({ type, value, periodSeconds }) => {
    const [added, removed] = changed(changes, periodSeconds, nowMs)
    const start = current - added + removed
    return type === 'Pods' ? start + value : Math.ceil(Number((start * (1 + value / 100)).toFixed(9)))
  })
  return Math.max(current, rules.selectPolicy === 'Min' ? Math.min(...limits) : Math.max(...limits))
}

function downLimit(
  current: number,
  changes: ScalingHistory['changes'],
  rules: Required<ScalingRules>,
  nowMs: number,
): number {
  if (rules.selectPolicy === 'Disabled') return current
  const limits = rules.policies.map(({ type, value, periodSeconds }) => {
    const [added, removed] = changed(changes, periodSeconds, nowMs)
    const start = current - added + removed
    return type === 'Pods' ? start - value : Math.floor(Number((start * (1 - value / 100)).toFixed(9)))
  })
  return Math.min(current, rules.selectPolicy === 'Min' ? Math.max(...limits) : Math.min(...limits))
}

/** How many replicas were added, and how many were removed, in the last `seconds`. */
function changed(changes: ScalingHistory['changes'], seconds: number, nowMs: number): [number, number] {
  let [added, removed] = [0, 0]
  for (const { atMs, by } of changes)
    if (nowMs - atMs < seconds * 1000) {
      if (by > 0) added += by
      else removed -= by
    }
  return [added, removed]
}
