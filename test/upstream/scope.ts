/** The groups of which every test is listed, also those outside of the conformance suite. */
const groups = ['[sig-api-machinery]', '[sig-auth]', '[sig-cli]', '[sig-instrumentation]']

/** Whether a test must be in one of our lists: those of the conformance suite, and all of some groups. */
export function isInScope(name: string): boolean {
  return name.includes('[Conformance]') || groups.some((group) => name.startsWith(group))
}
