// The agent of Argo CD's gitops-engine beside a real kube-apiserver and beside 20 logical clusters at once.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClusterAccess } from '#test/clients/controllers/cluster-access.ts'
import { createGitRepository } from '#test/clients/controllers/git-repository.ts'
import { startGitopsAgent } from '#test/clients/controllers/gitops-agent.ts'
import { firstCommit, gitopsStory } from '#test/clients/controllers/gitops-agent-story.ts'
import { expectNoUnexplainedErrors } from '#test/clients/controllers/logged-errors.ts'
import { besideClusters } from './beside-clusters.ts'

describe("the agent of Argo CD's gitops-engine", function () {
  let dir: string
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-gitops-'))
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  besideClusters('argo', live)

  async function live(cluster: ClusterAccess): Promise<void> {
    const repository = await createGitRepository(join(dir, cluster.name))
    await repository.commit(firstCommit)
    await using agent = await startGitopsAgent(cluster, repository.dir)
    for (const { run } of gitopsStory) await run(cluster, agent, repository)
    expectNoUnexplainedErrors(agent.process.log(), [], cluster.name)
  }
})
