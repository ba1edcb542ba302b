// A member in pull mode whose agent is a process beside it.
import { kcpProgram, kubectl, runKcp, startProcess, type ManagedProcess } from '#test/support/index.ts'
import type { KcpUnderTest } from './kcp-under-test.ts'

interface Options {
  readonly kcp: Pick<KcpUnderTest, 'port' | 'adminKubeconfig'>
  /** The member's. */
  readonly kubeconfig: string
  readonly dir: string
}

/** On a machine that others use, too, the API server of a member may need minutes for its first answers. */
const readySeconds = 600
/** Characters of the log of an agent that an error shows. */
const maxLogged = 4000

/** Runs `joining`, a command without --pull, in pull mode. Resolves with the agent when the member is Ready. */
export async function joinByAgent(
  joining: readonly [string, string, string, ...string[]],
  { kcp, kubeconfig, dir }: Options,
): Promise<ManagedProcess> {
  const [, , name] = joining
  await runKcp([...joining, '--pull', '--approve', '--apply', '--server', `https://127.0.0.1:${kcp.port}`])
  const agent = await startProcess({
    name: `agent-${name}`,
    command: kcpProgram,
    // Among thousands of connections of members, a free port may be taken before the agent listens at it.
    args: ['agent', '--kubeconfig', kubeconfig, '--api-port', '0', '--health-port', '0'],
    cwd: dir,
  })
  try {
    await kubectl(kcp.adminKubeconfig, ['wait', '--for=condition=Ready', `mc/${name}`, `--timeout=${readySeconds}s`])
  } catch (error) {
    const seen = await kubectl(kcp.adminKubeconfig, ['get', `mc/${name}`, '-o', 'jsonpath={.status}'])
    const state = agent.running ? 'runs' : 'has ended'
    throw new Error(`its agent ${state}, and says:\n${agent.log().slice(-maxLogged)}\n${seen.stdout}`, { cause: error })
  }
  return agent
}
