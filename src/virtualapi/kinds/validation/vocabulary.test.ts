import { expect } from 'chai'
import { label, nonNegative } from './basic-rules.ts'
import {
  all,
  at,
  causesOf,
  changes,
  each,
  eachValue,
  fields,
  firstOf,
  forbidden,
  given,
  immutable,
  maxItems,
  nonEmpty,
  oneOf,
  optional,
  orEmpty,
  present,
  required,
  unique,
  type Rule,
} from './vocabulary.ts'

interface Port {
  readonly name?: string
  readonly number?: number
  readonly kind?: string | null
}
interface Spec {
  readonly ports?: readonly Port[] | null
  readonly amounts?: Readonly<Record<string, string>>
}

/** The errors as `field: reason`, without the common start of the reasons. */
function errorsOf<T>(rule: Rule<T>, value: T, path = 'spec'): string[] {
  return causesOf(rule, path, value).map(({ field, reason }) => `${field}: ${reason?.replace('FieldValue', '')}`)
}

describe('the vocabulary of rules', () => {
  const port = fields<Port>({
    name: required(all<string>(label, unique())),
    number: nonNegative,
    kind: given(oneOf(['TCP', 'UDP'])),
  })
  const spec = fields<Spec>({ ports: each(port), amounts: eachValue<string>(label) })

  it('reports nothing about a valid value', () => {
    const ports = [{ name: 'a', number: 0, kind: 'TCP' }, { name: 'b' }]
    expect(errorsOf(spec, { ports, amounts: { x: 'y' } })).to.deep.equal([])
  })

  it('reports errors in the order of the table, with the paths of members, items and keys', () => {
    const ports = [{ name: '', number: -1, kind: 'x' }, { name: 'a' }, { name: 'a' }]
    expect(errorsOf(spec, { ports, amounts: { x: '!' } })).to.deep.equal([
      'spec.ports[0].name: Required',
      'spec.ports[0].number: Invalid',
      'spec.ports[0].kind: NotSupported',
      'spec.ports[2].name: Duplicate',
      'spec.amounts[x]: Invalid',
    ])
  })

  it('has places relative to the current one', () => {
    const above = each<string>(at('..', oneOf([])))
    expect(errorsOf(fields<{ list: string[] }>({ list: above }), { list: ['x'] })).to.deep.equal([
      'spec.list: NotSupported',
    ])
    const beside: Rule<string> = (_, report) => report.required('../other[3].x')
    expect(errorsOf(fields<{ name: string }>({ name: beside }), { name: 'x' })).to.deep.equal([
      'spec.other[3].x: Required',
    ])
    expect(errorsOf(nonEmpty(), '', '')).to.deep.equal(['<nil>: Required'])
  })

  for (const { title, rule, absent, empty } of [
    { title: 'optional', rule: optional(label), absent: [], empty: ['x: Invalid'] },
    { title: 'given', rule: given(label), absent: [], empty: [] },
    { title: 'required', rule: required(label), absent: ['x: Required'], empty: ['x: Required'] },
    { title: 'present', rule: present(label), absent: ['x: Required'], empty: ['x: Invalid'] },
    { title: 'orEmpty', rule: orEmpty(label), absent: ['x: Invalid'], empty: ['x: Invalid'] },
    { title: 'oneOf', rule: oneOf(['a']), absent: [], empty: ['x: NotSupported'] },
    { title: 'forbidden', rule: forbidden('no'), absent: [], empty: ['x: Forbidden'] },
  ])
    it(`tells an absent text from an empty one: ${title}`, () => {
      expect(errorsOf<string | undefined>(rule, undefined, 'x')).to.deep.equal(absent)
      expect(errorsOf<string | undefined>(rule, '', 'x')).to.deep.equal(empty)
    })

  it('keeps the keys of each list apart', () => {
    const lists = each(each(unique<string>()))
    expect(errorsOf(lists, [['a', 'b'], ['a'], ['b', 'c', 'b']])).to.deep.equal(['spec[2][2]: Duplicate'])
  })

  it('stops at the first of several rules that finds an error', () => {
    const short = firstOf<readonly string[]>(maxItems(1), each(label))
    expect(errorsOf(short, ['!', '!'])).to.deep.equal(['spec: TooMany'])
    expect(errorsOf(short, ['!'])).to.deep.equal(['spec[0]: Invalid'])
  })

  it('compares a member with the old one, and takes null for absent', () => {
    const rule = changes<Port>({ name: immutable(), kind: immutable() })
    const changed = (now: Port, old: Port): string[] =>
      causesOf(rule, 'spec', now, old).map(({ field, message }) => `${field}: ${message}`)
    expect(changed({ name: 'a', kind: null }, { name: 'a' })).to.deep.equal([])
    expect(changed({}, { name: 'a' })).to.deep.equal(['spec.name: Invalid value: null: field is immutable'])
  })
})
