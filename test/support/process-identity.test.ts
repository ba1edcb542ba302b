import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { identifyProcess, isAlive, killProcesses, signalProcess } from './process-identity.ts'

describe('the identity of a process', () => {
  it('holds while the process lives and no longer', async () => {
    const child = spawn('sleep', ['60'])
    await once(child, 'spawn')
    const identity = identifyProcess(child.pid!)!
    expect(isAlive(identity)).to.equal(true)
    await killProcesses([identity])
    expect(isAlive(identity)).to.equal(false)
  })

  it('differs from that of another process with the same pid', () => {
    const reused = { ...identifyProcess(process.pid)!, startTicks: '1' }
    expect(isAlive(reused)).to.equal(false)
    expect(signalProcess(reused, 'SIGKILL')).to.equal(false) // otherwise this test process would die
  })

  it('is undefined if no process has the pid', () => expect(identifyProcess(2 ** 22 + 1)).to.equal(undefined))
})
