// Builds the programs that the tests run, before the timeout of a test starts: on a new machine, building Kubernetes
// takes minutes.   node scripts/prepare-tests.ts
import { clusterPrograms, ensureBrowser, ensurePrograms, ensureSystemPackages } from '#test/support/index.ts'

/** Resolves with true once the real programs are in the cache; prints what is missing otherwise. */
export async function prepareTests(): Promise<boolean> {
  // Where nodes cannot run, the tests that need them report it themselves.
  await ensureSystemPackages()
  await ensureBrowser().catch((error: unknown) => console.error(String(error)))
  try {
    await ensurePrograms([...clusterPrograms, 'helm', 'kwok', 'kustomize-controller'])
    return true
  } catch (error) {
    console.error(`the programs that the tests need could not be built (Go is needed): ${String(error)}`)
    return false
  }
}

if (import.meta.main) process.exitCode = (await prepareTests()) ? 0 : 1
