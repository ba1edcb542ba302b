import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { identifyProcess, isAlive, killProcesses, signalProcess } from './process-identity.ts'

describe('the identity of a process', () => {
  it('holds for a living process and ends with it', async () => {
    const child = spawn('sleep', ['60'])
    await once(child, 'spawn')
    const identity = identifyProcess(child.pid!)!
    expect(isAlive(identity)).to.equal(true)
    await killProcesses([identity])
    expect(isAlive(identity)).to.equal(false)
  })

  it('is not that of another process with the same pid', () => {
    const reused = { ...identifyProcess(process.pid)!, startTicks: '1' }
    expect(isAlive(reused)).to.equal(false)
    expect(signalProcess(reused, 'SIGKILL')).to.equal(false) // or this test would not live to say so
  })

  it('is undefined where no process is', () => expect(identifyProcess(2 ** 22 + 1)).to.equal(undefined))
})
