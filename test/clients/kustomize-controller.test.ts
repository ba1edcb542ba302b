// Flux's kustomize-controller, unchanged, in a logical cluster.
import { startInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import type { ManagedProcess } from '#test/support/index.ts'
import { startArtifactServer, type ArtifactServer } from './controllers/artifact-server.ts'
import { installFlux, startKustomizeController } from './controllers/flux.ts'
import { explainedByStory, kustomizeStory, uninstall } from './controllers/kustomize-story.ts'
import { expectNoUnexplainedErrors } from './controllers/logged-errors.ts'

describe("Flux's kustomize-controller in a logical cluster", function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let tenant: Tenant
  let artifacts: ArtifactServer
  let controller: ManagedProcess

  before(async function () {
    this.timeout(30 * 60_000) // the first build
    artifacts = stack.use(await startArtifactServer())
    const kcp = stack.use(await startInstance())
    tenant = await kcp.tenant('flux')
    await installFlux(tenant)
    controller = stack.use(await startKustomizeController(tenant))
  })
  after(() => stack.disposeAsync())

  for (const { title, run } of kustomizeStory) it(title, () => run(tenant, artifacts))

  it('deletes with a Kustomization what it applied', () => uninstall(tenant))

  it('logs no error that the story does not explain', () => {
    expectNoUnexplainedErrors(controller.log(), explainedByStory, tenant.name)
  })
})
