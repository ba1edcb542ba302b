// Parses image references, whose tag decides the default pull policy.

const digest = /@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$/
const tag = /:([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})$/
const host =
  '(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\\[[0-9a-fA-F:]+\\])(?::[0-9]+)?'
const part = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'
const path = new RegExp(`^(?:${host}/)?${part}(?:/${part})*$`)

/**
 * The default pull policy: Always for the tag `latest`, explicit or implied; IfNotPresent for other tags, digests and
 * invalid references.
 */
export function pullPolicyOf(reference: string): 'Always' | 'IfNotPresent' {
  const withoutDigest = reference.replace(digest, '')
  const hasDigest = withoutDigest !== reference
  const found = tag.exec(withoutDigest)
  const name = found === null ? withoutDigest : withoutDigest.slice(0, found.index)
  if (!path.test(name) || /^[0-9a-f]{64}$/.test(name)) return 'IfNotPresent'
  if (found === null) return hasDigest ? 'IfNotPresent' : 'Always'
  return found[1] === 'latest' ? 'Always' : 'IfNotPresent'
}
