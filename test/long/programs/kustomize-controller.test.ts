// Flux's kustomize-controller beside a real kube-apiserver and logical clusters: the same story leaves the same
// objects, managedFields included.
import { expect } from 'chai'
import { startArtifactServer, type ArtifactServer } from '#test/clients/controllers/artifact-server.ts'
import type { ClusterAccess } from '#test/clients/controllers/cluster-access.ts'
import { installFlux, startKustomizeController } from '#test/clients/controllers/flux.ts'
import {
  explainedByStory,
  kustomizeStory,
  leftObjects,
  uninstall,
  type LeftObject,
} from '#test/clients/controllers/kustomize-story.ts'
import { expectNoUnexplainedErrors } from '#test/clients/controllers/logged-errors.ts'
import { besideClusters } from './beside-clusters.ts'

describe("Flux's kustomize-controller beside many clusters", function () {
  const stack = new AsyncDisposableStack()
  let artifacts: ArtifactServer
  /** What the story leaves in a real cluster, which is first. */
  let real: readonly LeftObject[] | undefined
  before(async () => {
    artifacts = stack.use(await startArtifactServer())
  })
  after(() => stack.disposeAsync())

  // As in a logical cluster without members, nobody writes the status of workloads.
  const controllers = '--controllers=*,-deployment-controller,-disruption-controller,-cronjob-controller'
  const realFlags = { 'kube-controller-manager': [controllers] }
  besideClusters(
    'flux',
    async (cluster) => {
      const left = await live(cluster, artifacts)
      real ??= left
      expect(left, cluster.name).to.deep.equal(real)
    },
    { realFlags },
  )
})

/** The whole story; resolves with the objects before they are deleted. */
async function live(cluster: ClusterAccess, artifacts: ArtifactServer): Promise<readonly LeftObject[]> {
  await installFlux(cluster)
  await using controller = await startKustomizeController(cluster)
  for (const { run } of kustomizeStory) await run(cluster, artifacts)
  const left = await leftObjects(cluster)
  await uninstall(cluster)
  expectNoUnexplainedErrors(controller.log(), explainedByStory, cluster.name)
  return left
}
