// Completion of commands by a real bash and by a real kubectl.
import { expect } from 'chai'
import { dirname } from 'node:path'
import { ensurePrograms, kcpProgram, runCommand } from '#test/support/index.ts'

const folder = dirname(kcpProgram)
const env = { PATH: `${folder}:${process.env['PATH'] ?? ''}` }

describe('completion', function () {
  this.timeout(60_000)

  it('of bash offers commands, flags and values', async () => {
    const script = `
      source <(kcp completion bash)
      ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _kcp; echo "\${COMPREPLY[*]}"; }
      ask kcp pla
      ask kcp drain --d
      ask kcp member join --service-network G`
    const { stdout } = await runCommand('bash', ['-c', script], { env })
    expect(stdout.trim().split('\n')).to.deep.equal(['placement', '--dry-run', 'Gateway'])
  })

  it('of kubectl offers them for its plugin, which is the same program', async () => {
    const { kubectl } = await ensurePrograms(['kubectl'])
    const { stdout } = await runCommand(kubectl, ['__complete', 'kcp', 'member', 'j'], { env })
    expect(stdout).to.match(/^join\tregister a cluster/)
    const help = await runCommand(kubectl, ['kcp', 'drain', '--help'], { env })
    expect(help.stdout).to.include('Usage: kcp drain')
  })

  it('refuses a shell that it does not know', async () => {
    const { code, stderr } = await runCommand(kcpProgram, ['completion', 'tcsh'], { expectCode: 'any' })
    expect([code, stderr.split('\n')[0]]).to.deep.equal([
      2,
      "error: command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.",
    ])
  })
})
