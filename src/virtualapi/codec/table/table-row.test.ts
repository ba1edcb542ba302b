import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { parseApiVersion, type KubeObject } from '#apimachinery/meta/index.ts'
import { builtInResourceOfKind, builtInResources } from '#virtualapi/kinds/resources/builtin-resources.ts'
import type { PrinterColumn } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import { columnsOfKind, humanDuration, tableColumns, tableRow } from './index.ts'

interface Vector {
  object: KubeObject
  columns?: PrinterColumn[]
  cells: unknown[]
}
const vectors = JSON.parse(
  readFileSync(new URL('../../../../test/vectors/table.json', import.meta.url), 'utf8'),
) as Vector[]
const now = Date.parse('2026-05-05T05:05:05Z')

/** Replaces `@-90s` by the time 90 seconds before now, `@-90u` by the same with microseconds. */
function dated(object: KubeObject): KubeObject {
  const text = JSON.stringify(object).replaceAll(/"@-(\d+)[su]"/g, (_, seconds: string) =>
    JSON.stringify(new Date(now - Number(seconds) * 1000).toISOString().replace('.000', '')),
  )
  return JSON.parse(text) as KubeObject
}

function infoOf({ apiVersion, kind }: KubeObject, builtIn: boolean): ResourceInfo {
  const { group, version } = parseApiVersion(apiVersion)
  const row = builtInResourceOfKind({ group, version, kind })
  return row ?? { ...builtInResources()[0]!, group, version, kind, builtIn }
}

describe('rows of kubectl tables', () => {
  for (const { object, columns, cells } of vectors)
    it(`are what kube-apiserver prints: ${object.kind} ${object.metadata.name ?? ''}`, () => {
      const info = infoOf(object, columns === undefined)
      const row = tableRow(info, dated(object), now, columns)
      const named = (values: unknown[]): unknown[] =>
        values.map((cell, index) => [columns?.[index - 1]?.jsonPath, cell])
      expect(named(row.cells)).to.deep.equal(named(cells))
    })

  it('have a cell for every column, except IPAddress, which has one more upstream', () => {
    for (const { object, columns, cells } of vectors) {
      const count = (
        columns === undefined ? columnsOfKind(infoOf(object, true)) : tableColumns(infoOf(object, false), columns)
      )!
      expect(cells.length - count.length, object.kind).to.equal(object.kind === 'IPAddress' ? 1 : 0)
    }
  })

  it('count the endpoints of many addresses and ports without making each', () => {
    const row = builtInResourceOfKind({ group: '', version: 'v1', kind: 'Endpoints' })!
    const many = 50_000
    const subset = {
      addresses: Array.from({ length: many }, (_, n) => ({ ip: `10.0.${n >> 8}.${n & 255}` })),
      ports: Array.from({ length: many }, (_, n) => ({ port: n + 1 })),
    }
    const object = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'e' }, subsets: [subset, subset] }
    const shown = '10.0.0.0:1,10.0.0.1:1,10.0.0.2:1'
    expect(tableRow(row, object, now).cells[1]).to.equal(`${shown} + ${2 * many * many - 3} more...`)
  })

  it('show name and creation time of kinds without columns of their own', () => {
    const role = builtInResourceOfKind({ group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'Role' })!
    expect(tableColumns(role).map(({ name }) => name)).to.deep.equal(['Name', 'Created At'])
    const object = {
      apiVersion: role.group,
      kind: 'Role',
      metadata: { name: 'r', creationTimestamp: '2026-01-01T00:00:00Z' },
    }
    expect(tableRow(role, object, now).cells).to.deep.equal(['r', '2026-01-01T00:00:00Z'])
  })

  it('show the age of custom resources without printer columns', () => {
    const info = { ...builtInResources()[0]!, builtIn: false }
    expect(tableColumns(info, []).map(({ name, type }) => [name, type])).to.deep.equal([
      ['Name', 'string'],
      ['Age', 'date'],
    ])
    const object = { apiVersion: 'v1', kind: 'W', metadata: { name: 'w', creationTimestamp: '2026-05-05T05:00:05Z' } }
    expect(tableRow(info, object, now).cells).to.deep.equal(['w', '5m'])
  })

  it('have a Completed condition for finished pods', () => {
    const pod = builtInResourceOfKind({ group: '', version: 'v1', kind: 'Pod' })!
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: {}, status: { phase: 'Succeeded' } }
    expect(tableRow(pod, object, now).conditions?.[0]).to.include({ type: 'Completed', reason: 'Succeeded' })
    expect(tableRow(pod, { ...object, status: {} }, now)).to.not.have.property('conditions')
  })

  it('are printed for objects of any shape', () => {
    for (const row of builtInResources())
      for (const value of [null, 1, 'x', [], {}, [null], [[]]]) {
        const object = {
          apiVersion: 'v1',
          kind: row.kind,
          metadata: {},
          spec: value,
          status: value,
          subsets: value,
          ports: value,
        } as unknown as KubeObject
        expect(tableRow(row, object, now).cells.length).to.be.greaterThan(0)
      }
  })
})

describe('rows of thousands of columns', () => {
  it('are filled until the budget of the row is spent', () => {
    const items = Array.from({ length: 100 }, (_, i) => ({ x: String(i), y: 'found' }))
    const object = {
      apiVersion: 'a.b/v1',
      kind: 'W',
      metadata: { name: 'w' },
      spec: { items },
    } as unknown as KubeObject
    const columns = Array.from({ length: 3000 }, (_, i) => ({
      ...{ name: `c${i}`, type: 'string', priority: 0 },
      jsonPath: `.spec.items[?(@.x=="${i % 100}")].y`,
    })) as PrinterColumn[]
    const { cells } = tableRow(infoOf(object, false), object, now, columns)
    expect(cells).to.have.length(3001)
    expect(cells.slice(0, 21)).to.deep.equal(['w', ...new Array<string>(20).fill('found')])
    expect(cells.at(-1)).to.equal(null)
  })

  it('have an empty cell for a path that is too long', () => {
    const object = { apiVersion: 'a.b/v1', kind: 'W', metadata: { name: 'w' }, spec: 1 } as unknown as KubeObject
    const column = (jsonPath: string): PrinterColumn => ({ name: 'c', type: 'string', jsonPath })
    const paths = ['.spec', `.spec${'.'.repeat(5000)}`]
    expect(tableRow(infoOf(object, false), object, now, paths.map(column)).cells).to.deep.equal(['w', '1', null])
  })
})

describe('durations in tables', () => {
  const [s, m, h, d] = [1000, 60_000, 3_600_000, 86_400_000]
  for (const [span, text] of [
    [-2 * s, '<invalid>'],
    [-1 * s, '0s'],
    [-0.5 * s, '0s'],
    [119.9 * s, '119s'],
    [2 * m, '2m'],
    [9 * m + 59 * s, '9m59s'],
    [10 * m + 1 * s, '10m'],
    [179 * m, '179m'],
    [3 * h, '3h'],
    [7 * h + 59 * m, '7h59m'],
    [47 * h, '47h'],
    [48 * h, '2d'],
    [7 * d + 23 * h, '7d23h'],
    [8 * d + 23 * h, '8d'],
    [729 * d, '729d'],
    [730 * d, '2y'],
    [800 * d, '2y70d'],
    [9 * 365 * d + 5 * d, '9y'],
  ] as const)
    it(text, () => expect(humanDuration(span)).to.equal(text))
})
