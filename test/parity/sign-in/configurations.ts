// Generated AuthenticationConfigurations: mostly right, with errors of each kind.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'

type Below = (bound: number) => number

const urls = [
  ...['https://a.example', 'https://b.example/path', 'https://a.example/', 'http://a.example', '', 'a.example'],
  ...['https://user:secret@a.example', 'https://a.example?x=y', 'https://a.example#part', 'https://a.example:8443'],
  ...['https://kubernetes.default.svc', 'HTTPS://a.example', '//a.example', 'https://a.example?', 'https://a.example#'],
]
const texts = ['', 'a', 'b', 'groups', 'email', 'sub', 'a b', 'ü']
const claimExpressions = [
  ...['claims.sub', 'claims.email', 'claims.?email.orValue("x")', 'claims.email_verified', 'claims.a.b', '"x"', '1'],
  ...['claims.email_verified ? claims.email : claims.sub', 'claims["email"]', '[claims.email]', 'claims.groups'],
  ...['{"a": claims.email}', 'claims.groups.map(g, g + claims.email)', 'claims.x.email', 'cl.email', 'claims.sub +'],
  ...['has(claims.email)', 'claims.?email_verified.orValue(true)', 'claims', 'user.username', 'claims.sub == "x"'],
  ...['claims.groups.exists(g, g == "a")', 'claims.sub.startsWith("a")', '!has(claims.x) || claims.x', 'true', '""'],
  ...['string(claims.sub) == "x" && claims.email_verified', 'claims.?email.hasValue()', 'size(claims.groups) < 3'],
]
const userExpressions = [
  ...['user.username != "x"', '!user.username.startsWith("system:")', 'user.groups.all(g, !g.startsWith("system:"))'],
  ...['user.uid == ""', 'user.extra["a"][0] == "x"', 'user.name', 'user.groups', 'claims.sub == "x"', 'true', '', '1'],
  ...[
    'user.username',
    'user.groups == 1',
    'has(user.uid)',
    '"a" in user.extra',
    'user.username.size() < 10',
    'user.x == 1',
  ],
  ...[
    'user["username"] == "x"',
    'user.groups.exists(g, g.foo)',
    'user == user',
    'has(user.foo)',
    'user.?uid.orValue("") == ""',
  ],
]
const keys = [
  ...[
    'example.org/foo',
    'example.org/Foo',
    'foo',
    '',
    '/foo',
    'example.org/',
    'kubernetes.io/x',
    'a.k8s.io/x',
    'k8s.io/x',
  ],
  ...['Example.org/x', 'exa_mple/x', 'example.org/a/b', 'example.org/a b', '-a/x', 'example.org/%', 'ak8s.io/x'],
]

/** A configuration of the version that kube-apiserver has. */
export function randomConfiguration(below: Below, authorities: readonly string[]): JsonObject {
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T
  const often = (): boolean => below(10) < 7
  const some = <T>(most: number, make: () => T): T[] => Array.from({ length: below(most + 1) }, make)
  const maybe = (name: string, make: () => JsonValue, isUsual = false): JsonObject =>
    below(10) < (isUsual ? 9 : 2) ? { [name]: make() } : {}
  const prefixed = (isUsual: boolean): JsonObject => {
    const hasClaim = often()
    return {
      ...(hasClaim && maybe('claim', () => pick(texts), true)),
      ...(hasClaim && maybe('prefix', () => pick(texts), true)),
      ...((!hasClaim || below(12) === 0) && maybe('expression', () => pick(claimExpressions), isUsual)),
      ...(!hasClaim && maybe('prefix', () => pick(texts))),
    }
  }
  const issuer = (): JsonObject => ({
    ...maybe('url', () => (often() ? `https://${below(50)}.example` : pick(urls)), true),
    ...maybe('discoveryURL', () => pick(urls)),
    ...maybe('certificateAuthority', () => pick(authorities)),
    ...maybe('audiences', () => (often() ? [pick(['kcp', 'x'])] : some(3, () => pick(texts))), true),
    ...maybe('audienceMatchPolicy', () => pick(['MatchAny', 'MatchAny', 'MatchAll', ''])),
    ...(below(20) === 0 && { egressSelectorType: pick(['controlplane', 'cluster', 'other', '']) }),
  })
  const authenticator = (): JsonObject => ({
    issuer: issuer(),
    claimMappings: {
      ...maybe('username', () => prefixed(true), true),
      ...maybe('groups', () => prefixed(false)),
      ...maybe('uid', () => ({
        ...maybe('claim', () => pick(texts)),
        ...maybe('expression', () => pick(claimExpressions), true),
      })),
      ...maybe('extra', () =>
        some(3, () => ({
          key: often() ? `example.org/k${below(9)}` : pick(keys),
          ...maybe('valueExpression', () => pick(claimExpressions), true),
        })),
      ),
    },
    ...maybe('claimValidationRules', () =>
      some(3, () => ({
        ...(often()
          ? maybe('expression', () => pick(claimExpressions), true)
          : maybe('claim', () => pick(texts), true)),
        ...maybe('requiredValue', () => pick(texts)),
        ...maybe('message', () => pick(texts)),
        ...maybe('claim', () => pick(['', 'a'])),
      })),
    ),
    ...maybe('userValidationRules', () =>
      some(3, () => ({
        ...maybe('expression', () => pick(userExpressions), true),
        ...maybe('message', () => pick(texts)),
      })),
    ),
  })
  return {
    apiVersion: `apiserver.config.k8s.io/${pick(['v1', 'v1', 'v1beta1'])}`,
    kind: 'AuthenticationConfiguration',
    ...maybe('jwt', () => [authenticator(), ...some(1, authenticator)], true),
    ...maybe('anonymous', () => ({
      ...maybe('enabled', () => below(2) === 0, true),
      ...maybe('conditions', () => some(2, () => ({ path: pick(['/livez', '/readyz', 'x']) }))),
    })),
  }
}

/** The configuration with one field that does not exist, or with a value of another type. Undefined if it has no fields. */
export function damaged(configuration: JsonObject, below: Below): JsonObject {
  const copy = structuredClone(configuration)
  const places = objectsIn(copy)
  const place = places[below(places.length)] ?? copy
  const names = Object.keys(place)
  if (below(2) === 0) place['unknown'] = 'x'
  else place[names[below(names.length)] ?? 'kind'] = [true, 1, [1], { a: 'b' }][below(4)] as JsonValue
  return copy
}

function objectsIn(value: JsonValue): Record<string, JsonValue>[] {
  if (Array.isArray(value)) return value.flatMap(objectsIn)
  if (typeof value !== 'object' || value === null) return []
  return [value, ...Object.values(value).flatMap(objectsIn)]
}
