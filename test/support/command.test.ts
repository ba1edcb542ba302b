import { expect } from 'chai'
import { runCommand } from './command.ts'

const failure = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'no failure',
    (error: unknown) => String(error),
  )

describe('running a command', () => {
  it('passes input and returns output', async () => {
    expect(await runCommand('cat', [], { input: 'hello' })).to.deep.equal({ code: 0, stdout: 'hello', stderr: '' })
  })

  it("rejects with the program's standard error, unless that exit code was expected", async () => {
    const args = ['-c', 'echo broken >&2; exit 3']
    expect(await failure(runCommand('sh', args)))
      .to.contain('code 3')
      .and.contain('broken')
    expect((await runCommand('sh', args, { expectCode: 3 })).stderr).to.equal('broken\n')
    expect((await runCommand('sh', args, { expectCode: 'any' })).code).to.equal(3)
  })

  it('names a program that does not exist', async () => {
    expect(await failure(runCommand('no-such-program', []))).to.contain('no-such-program')
  })

  it('kills a program that exceeds the timeout', async () => {
    expect(await failure(runCommand('sleep', ['30'], { timeoutMs: 30 }))).to.contain('30 ms')
  })

  it('kills on abort and rejects with the reason of the signal', async () => {
    const signal = AbortSignal.timeout(20)
    expect(await failure(runCommand('sleep', ['30'], { signal }))).to.contain('TimeoutError')
  })
})
