import { expect } from 'chai'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repositoryRoot } from '#test/support/index.ts'
import { hasEnded, KeptResults } from './kept-results.ts'
import { checked, parseNotPassing, parsePassing, readLists, withoutNames } from './lists.ts'
import { parseReport, suiteFailures, type UpstreamResult } from './report.ts'
import { resultsPage } from './results-page.ts'
import { partsOf, worstOfEach } from './round.ts'
import { focusOf } from './suite.ts'

const document = [
  '# Title',
  'Words.',
  '',
  '## Needs pods',
  '- [sig-a] one `x` [Conformance]',
  '',
  '## Quota',
  'Why.',
  '- [sig-b] two',
]

describe('lists of upstream tests', () => {
  it('are committed and name every test once', () => {
    const { passing, withWorkloads, withNodes, inMembers, notPassing } = readLists()
    for (const list of [passing, withWorkloads, withNodes, inMembers]) expect([...list].sort()).to.deep.equal(list)
    for (const { reason, names } of notPassing) expect(reason, names[0] ?? '').to.not.equal('')
  })

  it('take reasons from headings', () => {
    expect(parseNotPassing(document.join('\n'))).to.deep.equal([
      { reason: 'Needs pods', names: ['[sig-a] one `x` [Conformance]'] },
      { reason: 'Quota', names: ['[sig-b] two'] },
    ])
  })

  it('remove only the names that pass now', () => {
    expect(withoutNames(document.join('\n'), new Set(['[sig-b] two', 'Why.']))).to.equal(
      document.slice(0, -1).join('\n'),
    )
  })

  it('refuse a name in two lists', () => {
    const none = { passing: [], withWorkloads: [], withNodes: [], inMembers: [], notPassing: [] }
    expect(() => checked({ ...none, passing: ['a'], withNodes: ['a'] })).to.throw('"a" is listed twice')
    const notPassing = [{ reason: 'r', names: ['b'] }]
    expect(() => checked({ ...none, passing: parsePassing('a\nb\n'), notPassing })).to.throw('"b" is listed twice')
  })
})

describe('result of a test in several logical clusters', () => {
  const result = (name: string, state: string): UpstreamResult => ({ name, state, seconds: 1, message: '' })

  it('is the one that did not pass', () => {
    const all = [result('a', 'passed'), result('b', 'failed'), result('a', 'timedout'), result('b', 'passed')]
    expect(worstOfEach(all).map(({ name, state }) => [name, state])).to.deep.equal([
      ['a', 'timedout'],
      ['b', 'failed'],
    ])
  })
})

describe('tests of a round', () => {
  it('are divided among processes, except for tests that must run alone', () => {
    expect(partsOf(['a', 'b [Serial]', 'c', 'd', 'e [Disruptive]'], 2)).to.deep.equal({
      parts: [['a', 'd'], ['c']],
      serial: ['b [Serial]', 'e [Disruptive]'],
    })
    expect(partsOf(['a'], 2)).to.deep.equal({ parts: [['a']], serial: [] })
  })
})

describe('page of results', () => {
  const lists = {
    passing: ['[sig-b] one | `x` [Conformance]', '[sig-a] z'],
    withWorkloads: ['[sig-b] three'],
    withNodes: ['[sig-b] two'],
    inMembers: ['[sig-b] zero'],
    notPassing: [
      { reason: 'Needs pods', names: ['[sig-b] four [Conformance]'] },
      { reason: 'Too slow', names: ['[sig-b] five'] },
    ],
  }

  it('has a row for every listed test, and counts', () => {
    const failed = { name: '[sig-a] z', state: 'failed', seconds: 1, message: 'expected\n1' }
    expect(
      resultsPage(lists, [failed])
        .split('\n')
        .filter((line) => line.startsWith('| ')),
    ).to.deep.equal([
      '| | pass | fail | skip |',
      '| [Conformance] | 1 | 0 | 1 |',
      '| others | 3 | 2 | 0 |',
      '| all | 4 | 2 | 1 |',
      '| test | result | |',
      '| z | fail | failed: expected |',
      '| test | result | |',
      '| five | fail | Too slow |',
      '| four [Conformance] | skip | Needs pods |',
      '| one \\| \\`x\\` [Conformance] | pass |  |',
      '| three | pass | with workloads |',
      '| two | pass | with nodes |',
      '| zero | pass | in a member |',
    ])
  })

  it('is committed as the lists say', () => {
    const page = readFileSync(join(repositoryRoot, 'docs/reference/conformance.md'), 'utf8')
    expect(page, 'run make conformance').to.equal(resultsPage(readLists(), []))
  })
})

describe('report of the upstream suite', () => {
  const report = JSON.stringify([
    {
      SpecReports: [
        { LeafNodeType: 'SynchronizedBeforeSuite', State: 'failed', Failure: { Message: 'no server' } },
        {
          LeafNodeType: 'It',
          ContainerHierarchyTexts: ['[sig-a] A', 'with b'],
          LeafNodeText: 'works [Conformance]',
          State: 'passed',
          RunTime: 1_500_000_000,
        },
        {
          LeafNodeType: 'It',
          ContainerHierarchyTexts: null,
          LeafNodeText: 'bare',
          State: 'failed',
          Failure: { Message: 'no' },
        },
      ],
    },
  ])

  it('joins all texts of a test to its name', () => {
    expect(parseReport(report)).to.deep.equal([
      { name: '[sig-a] A with b works [Conformance]', state: 'passed', seconds: 1.5, message: '' },
      { name: 'bare', state: 'failed', seconds: 0, message: 'no' },
    ])
  })

  it('distinguishes a suite that could not start', () => {
    expect(suiteFailures(report)).to.deep.equal(['no server'])
  })

  it('refuses a text that is not a report', () => {
    expect(() => parseReport('{}')).to.throw('no Ginkgo JSON report')
  })
})

describe('focus', () => {
  it('quotes names literally', () => {
    const focus = new RegExp(focusOf(['[sig-a] x (y) /z.', 'other']))
    expect(focus.test('Kubernetes e2e suite [sig-a] x (y) /z.')).to.equal(true)
    expect(focus.test('s x (y) /z.')).to.equal(false)
    expect(focus.test('other things')).to.equal(false)
  })
})

describe('results of a run in pieces', () => {
  const result = (name: string, state: string, message = ''): UpstreamResult => ({ name, state, seconds: 1, message })

  it('are kept until the next piece, also if one was killed while it wrote', () => {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-kept-'))
    try {
      const file = join(dir, 'deep', 'results.jsonl')
      new KeptResults(file).add('alone', [result('a', 'passed'), result('b', 'failed', 'why')])
      appendFileSync(file, '{"round":"alone","name":"c","sta')
      const kept = new KeptResults(file)
      expect(['a', 'b', 'c'].map((name) => kept.has('alone', name))).to.deep.equal([true, true, false])
      expect(kept.has('members', 'a')).to.equal(false)
      expect(kept.of('alone', ['c', 'b'])).to.deep.equal([result('b', 'failed', 'why')])
    } finally {
      rmSync(dir, { recursive: true })
    }
  })

  it('are those of tests that ended by themselves', () => {
    const all = [result('p', 'passed'), result('f', 'failed', 'x'), result('s', 'skipped', 'not here')]
    const cut = [result('t', 'timedout', 'suite'), result('i', 'interrupted'), result('s', 'skipped')]
    expect([...all, ...cut].map(hasEnded)).to.deep.equal([true, true, true, false, false, false])
  })
})
