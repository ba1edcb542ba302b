import { expect } from 'chai'
import { ContainerRun, type Told } from './container-run.ts'

const timing = { startMs: 100, pullMs: 200, stopMs: 0 }

function runOf(image: string, { restartPolicy = 'Always', command = [] as string[] } = {}) {
  const told: Told[] = []
  const setting = {
    role: 'main' as const,
    restartPolicy,
    timing,
    images: new Set<string>(),
    podTitle: 'web_default(uid)',
  }
  const run = new ContainerRun({ name: 'c', image, command }, { ...setting, tell: (one) => told.push(one) })
  /** The changes up to a time: `TIME STATE` for each. */
  const changes = (untilMs: number): string[] => {
    const seen: string[] = []
    for (let at: number | undefined = 0; at !== undefined && at <= untilMs && seen.length < 50;) {
      const next = run.advance(at, undefined)
      const { state, restartCount } = run.status(at, 'ContainerCreating')
      const [[kind, value] = ['', {}]] = Object.entries(state) as [string, { reason?: string; exitCode?: number }][]
      seen.push([at, value.reason ?? kind, value.exitCode ?? '', restartCount].join(' ').replaceAll('  ', ' '))
      at = next
    }
    return seen
  }
  return { run, told, changes }
}

describe('a simulated container', () => {
  it('is pulled, starts, and changes no more', () => {
    expect(runOf('demo/web').changes(1e9)).to.deep.equal(['0 ContainerCreating 0', '300 running 0'])
  })
  it('whose image is missing tells so twice, and changes no more', () => {
    const { changes, told } = runOf('demo/web:missing')
    expect(changes(1e9)).to.deep.equal(['0 ContainerCreating 0', '300 ErrImagePull 0', '1800 ImagePullBackOff 0'])
    expect(told.map(({ reason }) => reason)).to.deep.equal(['Failed', 'Failed'])
  })
  it('that fails restarts after one second, then later each time', () => {
    const seen = runOf('demo/fails').changes(100_000)
    expect(seen.slice(0, 8)).to.deep.equal([
      '0 ContainerCreating 0',
      '300 running 0',
      '600 Error 1 0',
      '1600 running 1',
      '1900 CrashLoopBackOff 1',
      '11900 running 2',
      '12200 CrashLoopBackOff 2',
      '32200 running 3',
    ])
  })
  it('of a Job ends with the code that its command says', () => {
    const batch = { restartPolicy: 'Never' }
    expect(runOf('busybox', batch).changes(1e9).at(-1)).to.equal('1300 Completed 0 0')
    expect(
      runOf('busybox', { ...batch, command: ['sh', '-c', 'sleep 3; exit 7'] })
        .changes(1e9)
        .at(-1),
    ).to.equal('3300 Error 7 0')
    expect(
      runOf('busybox', { ...batch, command: ['sleep', 'infinity'] })
        .changes(1e9)
        .at(-1),
    ).to.equal('300 running 0')
  })
})
