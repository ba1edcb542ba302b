import { Command, Option } from 'commander'
import { expect } from 'chai'
import { completionsOf } from './completion.ts'

const program = new Command('kcp')
  .addCommand(
    new Command('member').description('members').addCommand(
      new Command('join')
        .description('register a cluster')
        .option('--kubeconfig <file>', 'a file')
        .addOption(new Option('--service-network <type>', 'network').choices(['None', 'Flat', 'Gateway'])),
    ),
  )
  .addCommand(new Command('drain').description('empty a member').option('--dry-run', 'only show'))
  .addCommand(new Command('__hidden').description('not shown'), { hidden: true })

describe('what may follow on the command line', () => {
  for (const [words, expected] of [
    [[''], ['member', 'drain', 'help']],
    [['m'], ['member']],
    [
      ['member', ''],
      ['join', 'help'],
    ],
    [
      ['drain', '--'],
      ['--dry-run', '--help'],
    ],
    [['drain', '--dry-run', '--h'], ['--help']],
    [
      ['member', 'join', '--service-network', ''],
      ['None', 'Flat', 'Gateway'],
    ],
    [['member', 'join', '--service-network', 'F'], ['Flat']],
    [['drain', 'east', ''], []],
    [['nonsense', 'd'], ['drain']],
  ] as const)
    it(`after "kcp ${words.join(' ')}": ${expected.join(', ') || 'nothing'}`, () =>
      expect(completionsOf(program, words).candidates.map(({ word }) => word)).to.deep.equal(expected))

  it('is a file where the flag before takes any value', () => {
    expect(completionsOf(program, ['member', 'join', '--kubeconfig', ''])).to.deep.equal({
      candidates: [],
      takesFiles: true,
    })
    expect(completionsOf(program, ['drain', '']).takesFiles).to.equal(false)
  })
})
