// The command blocks of the documents: found, and not excused from being run without a bound.
import { expect } from 'chai'
import { commandBlocks } from './command-blocks.ts'
import { documentPaths, readDocument } from './documents.ts'

/** A block more that is not run needs a reason that convinces a reviewer; lower this when one is run again. */
const maxNotRun = 41

describe('command blocks', () => {
  it('are found with the comments before them', () => {
    const document = [
      ...['<!-- setup', 'export X=1', '-->', '```sh', 'kcp list', '```', '<!-- not run: it takes a cloud -->'],
      ...[
        '```sh',
        'helm install',
        '```',
        '```yaml',
        'kind: Pod',
        '```',
        '<!-- background until: true -->',
        '```sh',
        'kcp start',
        '```',
      ],
    ].join('\n')
    const blocks = commandBlocks(document)
    expect(blocks.map(({ line: _line, ...block }) => block)).to.deep.equal([
      { kind: 'setup', text: 'export X=1' },
      { kind: 'commands', text: 'kcp list' },
      { kind: 'commands', text: 'helm install', notRun: 'it takes a cloud' },
      { kind: 'commands', text: 'kcp start', until: 'true' },
    ])
    expect(() => commandBlocks('<!-- not run: x -->\n```yaml\n```')).to.throw('without commands')
    expect(() => commandBlocks('```sh\nkcp list')).to.throw('no end')
  })

  it('that are not run have a reason, and are few', () => {
    const all = documentPaths().flatMap((path) =>
      commandBlocks(readDocument(path)).map((block) => ({ ...block, path })),
    )
    const notRun = all.filter((block) => block.notRun !== undefined)
    expect(notRun.filter(({ notRun: why = '' }) => why.length < 15)).to.deep.equal([])
    expect(notRun.map(({ path, line, notRun: why = '' }) => `${path}:${line}: ${why}`)).to.have.length.at.most(
      maxNotRun,
    )
    expect(all.length - notRun.length).to.be.greaterThan(notRun.length)
  })

  it('name their language, so that none is taken for an example', () => {
    const unnamed = documentPaths().flatMap((path) =>
      readDocument(path)
        .split('\n')
        .flatMap((line, index, lines) => {
          const opens =
            /^ *```/.test(line) && lines.slice(0, index).filter((one) => /^ *```/.test(one)).length % 2 === 0
          const next = lines[index + 1] ?? ''
          return opens && line.trim() === '```' && /^(kubectl|kcp|bin\/kcp|helm|make) /.test(next)
            ? [`${path}:${index + 1}`]
            : []
        }),
    )
    expect(unnamed).to.deep.equal([])
  })
})
