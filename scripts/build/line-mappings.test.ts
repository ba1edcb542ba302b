import { expect } from 'chai'
import { SourceMap } from 'node:module'
import { transformSync } from 'esbuild'
import { lineMappings } from './line-mappings.ts'

describe('line mappings of a source map', () => {
  const source = [
    'export interface Shape { readonly sides: number }',
    'export function first(shape: Shape): string { return `${shape.sides}` }',
    '',
    '/** A comment. */',
    'export const second = (a: number, b: number): number => a + b',
    ...Array.from({ length: 50 }, (_, index) => `export const number${index}: number = second(${index}, ${index})`),
  ].join('\n')
  const { code, map } = transformSync(source, { loader: 'ts', sourcemap: true, sourcefile: 'shape.ts' })
  const full = JSON.parse(map) as ConstructorParameters<typeof SourceMap>[0]
  const reduced = { ...full, mappings: lineMappings(full.mappings) }

  it('lead from each line to the same line of the source as the full map', () => {
    const [before, after] = [new SourceMap(full), new SourceMap(reduced)]
    for (const [line, text] of code.split('\n').entries()) {
      if (text.trim() === '' || text.startsWith('//')) continue
      const column = text.length - 1
      const lineOf = (found: SourceMap): unknown => {
        const entry = found.findEntry(line, column)
        return 'originalLine' in entry ? [entry.originalSource, entry.originalLine] : entry
      }
      if (!text.startsWith('}') && !text.startsWith('export {') && !/^ {2}\w+,?$/.test(text))
        expect(lineOf(after), text).to.deep.equal(lineOf(before))
    }
  })

  it('are one for each line', () => {
    for (const line of reduced.mappings.split(';')) expect(line).not.to.contain(',')
    expect(reduced.mappings.length).to.be.lessThan(full.mappings.length / 3)
  })
})
