// Chromium for the tests of the console: the package of the distribution, or the program that KCP_TEST_CHROMIUM names.
import { existsSync } from 'node:fs'
import { installPackages } from './system-packages.ts'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** The path of the program. Rejects with what to install if it is missing and cannot be installed. */
export async function ensureBrowser(): Promise<string> {
  const named = process.env['KCP_TEST_CHROMIUM']
  if (named !== undefined) {
    if (existsSync(named)) return named
    throw new Error(`KCP_TEST_CHROMIUM names "${named}", which is not there`)
  }
  const found = places.find((path) => existsSync(path))
  if (found !== undefined) return found
  await installPackages({ chromium: ['chromium'] }).catch((error: unknown) => {
    const advice = 'install it (Debian: apt-get install chromium), or name the program in KCP_TEST_CHROMIUM'
    throw new Error(`the tests of the console need Chromium: ${advice}`, { cause: error })
  })
  return '/usr/bin/chromium'
}
