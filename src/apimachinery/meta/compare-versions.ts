// Sorts API versions as kube-apiserver does: the most stable first, then the newest.

const stages = ['alpha', 'beta', undefined]

/** Negative if `a` is preferred: v10 < v2 < v11beta2 < v3alpha1 < other, and others by name. */
export function compareVersions(a: string, b: string): number {
  const left = parseVersion(a)
  const right = parseVersion(b)
  if (left === undefined || right === undefined) return left === right ? compareText(a, b) : left === undefined ? 1 : -1
  return right.stage - left.stage || right.major - left.major || right.minor - left.minor
}

function parseVersion(version: string): { stage: number; major: number; minor: number } | undefined {
  const match = /^v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?$/.exec(version)
  if (match === null) return undefined
  return { stage: stages.indexOf(match[2]), major: Number(match[1]), minor: Number(match[3] ?? 0) }
}

/** Order of texts by UTF-16 code units, as of Go's strings for ASCII. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
