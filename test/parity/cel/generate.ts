// Random expressions over the resource of expressions.ts, mostly of the right types.

/** Numbers from 0 up to a bound, the same for the same seed. */
export function randomBelow(seed: number): (bound: number) => number {
  let state = seed >>> 0
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound
  }
}

type Type =
  'bool' | 'int' | 'double' | 'string' | 'strings' | 'ints' | 'map' | 'dyn' | 'duration' | 'timestamp' | 'optional'

/** Templates by type: `$type` stands for an expression of that type, `#` for a fresh loop variable. */
const templates: Readonly<Record<Type, readonly string[]>> = {
  bool: [
    'true',
    'false',
    'self.spec.flag',
    '$int < $int',
    '$int >= $int',
    '$int == $int',
    '$int != $int',
    '$int < $double',
    '$string == $string',
    '$string < $string',
    '$double <= $double',
    '$bool && $bool',
    '$bool || $bool',
    '!$bool',
    '($bool ? $bool : $bool)',
    '$string.startsWith($string)',
    '$string.contains($string)',
    '$string.endsWith($string)',
    '$string.matches("^[a-z]+$")',
    '$string.matches($string)',
    '$string in $strings',
    '$int in $ints',
    '$string in $map',
    '$int in [1, 2, 3]',
    '$strings.all(#, #.size() < $int)',
    '$strings.exists(#, # == $string)',
    '$ints.exists_one(#, # == $int)',
    '$ints.all(#, # > $int || $bool)',
    '$map.all(#, # != $string)',
    '$map.exists(#, #2, #2 == $int && # == $string)',
    '$strings == $strings',
    '$ints != $ints',
    '$map == $map',
    '$strings.isSorted()',
    'has(self.spec.name)',
    'has(self.spec.missing2)',
    'has($map.a)',
    'sets.contains($strings, $strings)',
    'sets.intersects($ints, $ints)',
    '$dyn == $dyn',
    '$dyn',
    '$duration < $duration',
    '$timestamp > $timestamp',
    '$optional.hasValue()',
    'isQuantity($string)',
    'isIP($string)',
    'isURL($string)',
    'self.spec.ports.exists(#, #.name == $string && has(#.port) && #.port > $int)',
  ],
  int: [
    '0',
    '1',
    '-3',
    '42',
    '9223372036854775807',
    'self.spec.replicas',
    'self.spec.maxReplicas',
    '$int + $int',
    '$int - $int',
    '$int * $int',
    '$int / $int',
    '$int % $int',
    '-($int)',
    '($bool ? $int : $int)',
    '$string.size()',
    'size($strings)',
    '$strings.size()',
    '$map.size()',
    '$ints.sum()',
    '$ints.max()',
    '$ints.min()',
    '$ints[0]',
    '$ints[$int]',
    '$map["a"]',
    '$map[$string]',
    'int($double)',
    'int($string)',
    '$string.indexOf($string)',
    '$strings.indexOf($string)',
    '$string.lastIndexOf($string)',
    '$optional.orValue($int)',
    '$timestamp.getFullYear()',
    '$duration.getSeconds()',
    '$ints.map(#, # + $int).sum()',
    '$ints.filter(#, $bool).size()',
    '$map.?a.orValue($int)',
    '$ints[?$int].orValue($int)',
  ],
  double: [
    '1.5',
    '-0.25',
    '1e3',
    'self.spec.ratio',
    '$double + $double',
    '$double * $double',
    '$double / $double',
    'double($int)',
  ],
  string: [
    '"a"',
    '"b"',
    '"héllo"',
    '""',
    '"10.0.0.1"',
    'self.spec.name',
    'self.spec.longname',
    'self.spec.mode',
    'self.metadata.name',
    '$string + $string',
    '($bool ? $string : $string)',
    '$strings[0]',
    '$strings[$int]',
    '$strings.join(",")',
    '$string.lowerAscii()',
    '$string.upperAscii()',
    '$string.trim()',
    '$string.replace($string, $string)',
    '$string.substring(1)',
    '$string.substring($int, $int)',
    '$string.charAt($int)',
    '$string.find("[a-z]+")',
    'string($int)',
    'string($double)',
    'string($bool)',
    '"%s-%d".format([dyn($string), dyn($int)])',
    'strings.quote($string)',
    '$strings.max()',
    'self.spec.ports[0].name',
    'self.spec.nested[0][0].k',
  ],
  strings: [
    '["a", "b"]',
    '[]',
    '[$string]',
    '[$string, $string]',
    'self.spec.list',
    'self.spec.ulist',
    '$strings + $strings',
    '$strings.map(#, # + $string)',
    '$strings.filter(#, # != $string)',
    '$strings.map(#, $bool, #)',
    '$string.split($string)',
    '$string.split(",", $int)',
    '$string.findAll("[a-z]")',
    'self.spec.ports.map(#, #.name)',
    '$strings.transformList(#, #2, #2 + string(#))',
    '($bool ? $strings : $strings)',
    '$strings.sort()',
    '$strings.reverse()',
    '$strings.distinct()',
    '$strings.sortBy(#, #)',
  ],
  ints: [
    '[1, 2, 3]',
    '[$int, $int]',
    'self.spec.ports.map(#, #.port)',
    '$strings.map(#, #.size())',
    '$ints + $ints',
    '$ints.filter(#, # > $int)',
    '$ints.map(#, # * 2)',
    '$ints.slice(0, 1)',
    '[$ints, $ints].flatten()',
    '$ints.transformList(#, #2, #2 > 1, # + #2)',
  ],
  map: [
    '{"a": 1}',
    'self.spec.anymap',
    '{$string: $int}',
    '$map.transformMap(#, #2, #2 + 1)',
    '($bool ? $map : $map)',
    '{?"a": $optional}',
  ],
  dyn: [
    'dyn($int)',
    'dyn($string)',
    'dyn($bool)',
    'dyn($double)',
    'self.spec.ios',
    'dyn($strings)',
    'dyn($map)',
    'dyn($map).a',
    'dyn($ints)[0]',
  ],
  duration: [
    'duration("1h")',
    'duration("90s")',
    'self.spec.dur',
    '$duration + $duration',
    '$duration - $duration',
    '($timestamp - $timestamp)',
  ],
  timestamp: [
    'timestamp("2020-01-02T03:04:05Z")',
    'self.spec.dt',
    'self.spec.date',
    '$timestamp + $duration',
    '$timestamp - $duration',
  ],
  optional: [
    'optional.of($int)',
    'optional.none()',
    'optional.ofNonZeroValue($int)',
    '$map.?a',
    '$map[?$string]',
    '$ints[?$int]',
    '$optional.or($optional)',
    '$optional.optMap(#, # + $int)',
    '$ints.first()',
  ],
}

const types = Object.keys(templates) as Type[]
const leaves = 2

/** A random expression. `below` gives random numbers. */
export function randomExpression(below: (bound: number) => number): string {
  let variables = 0
  const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T
  const make = (type: Type, depth: number): string => {
    const choices = depth > 0 ? templates[type] : templates[type].filter((text) => !text.includes('$'))
    const template = pick(choices.length > 0 ? choices : templates[type].slice(0, leaves))
    variables += 1
    const name = `v${String(variables)}`
    return template
      .replaceAll(/#2/g, `${name}b`)
      .replaceAll('#', name)
      .replaceAll(/\$([a-z]+)/g, (_match, wanted: string) => {
        // Now and then a type that does not fit.
        const chosen = below(60) === 0 ? pick(types) : (wanted as Type)
        const inner = make(chosen, depth - 1)
        return /^[\w."[\]]+$/.test(inner) ? inner : `(${inner})`
      })
  }
  return make(pick(types), 1 + below(3))
}
