import { expect } from 'chai'
import { parseYamlBody, type ParsedYaml } from './yaml.ts'

const parse = (text: string, maxDepth?: number): ParsedYaml => {
  return parseYamlBody(Buffer.from(text), maxDepth === undefined ? {} : { maxDepth })
}

describe('parseYamlBody', () => {
  it('reads values of all JSON types', () => {
    expect(
      parse('a: 1\nb: [x, true, null, 1.5]\nc:\n  d: "yes"\n  e: yes\n  f: 2024-01-01\n  g: 1:30\n  h: 0777\n').value,
    ).to.deep.equal({
      a: 1,
      b: ['x', true, null, 1.5],
      c: { d: 'yes', e: true, f: '2024-01-01', g: '1:30', h: 511 },
    })
  })
  it('reads numbers in the syntax of Go', () =>
    expect(parse('a: 0o644\nb: 0b11\nc: 1_000\nd: 0X1f\ne: 1e400\n0o7: x\n').value).to.deep.equal({
      ...{ a: 420, b: 3, c: 1000, d: 31, e: '1e400', 7: 'x' },
    }))
  it('keeps the key __proto__', () => {
    const { value } = parse('a: {__proto__: {x: 1}}')
    expect(JSON.stringify(value)).to.equal('{"a":{"__proto__":{"x":1}}}')
  })
  it('reads JSON', () => expect(parse('{"a": {"b": []}}').value).to.deep.equal({ a: { b: [] } }))
  it('expands aliases and merge keys to copies', () => {
    const { value } = parse('a: &x {k: 1}\nb: *x\nc: {<<: *x, m: 2}\n')
    expect(value).to.deep.equal({ a: { k: 1 }, b: { k: 1 }, c: { k: 1, m: 2 } })
    const { a, b } = value as { a: object; b: object }
    expect(a).to.not.equal(b)
  })
  it('reports duplicate keys', () => {
    expect(parse('a: 1\nb: {c: 1, c: 2}\na: 3\n')).to.deep.equal({
      value: { a: 3, b: { c: 2 } },
      duplicateFields: ['line 3: key "a" already set in map', 'line 2: key "c" already set in map'],
    })
  })

  const laughs = Array.from(
    { length: 12 },
    (_, i) =>
      `k${String(i)}: &a${String(i)} [${Array(9)
        .fill(i === 0 ? 'ha' : `*a${String(i - 1)}`)
        .join(', ')}]`,
  )
  for (const [title, text, error] of [
    ['an alias bomb', laughs.join('\n'), 'excessive aliasing'],
    ['a deep flow document', '['.repeat(100_000), 'exceeded max depth'],
    ['a deep block document', '- '.repeat(100_000), 'exceeded max depth'],
    ['broken text', 'a: [1\nb: }', 'yaml: line'],
    ['infinity', 'a: .inf', 'unsupported value'],
    ['an unknown alias', 'a: *b', 'error converting YAML to JSON'],
    ['an alias of itself', 'a: &x [*x]', 'error converting YAML to JSON'],
  ] as const) {
    it(`refuses ${title} quickly`, () => {
      const started = performance.now()
      expect(() => parse(text))
        .to.throw(error)
        .with.property('code', 400)
      expect(performance.now() - started).to.be.below(1500)
    })
  }
  it('reads the first of several documents, as upstream does', () => {
    expect(parse('a: 1\n---\nb: 2\n').value).to.deep.equal({ a: 1 })
  })
  it('refuses a body that is too large', () => {
    expect(() => parseYamlBody(Buffer.from('a: 1'), { maxBytes: 2 }))
      .to.throw('limit is 2')
      .with.property('code', 413)
  })
})
