// @dot-i/k8s-operator without what it would load and we never use. The library requires all of client-node for its own
// constructor, watch and CustomResourceDefinition reader, and an HTTP client for its own writes, all of which
// ResilientOperator replaces: 87 MB and 0.4 s of every start (Node 24). So, for that library alone, both are loaded with
// the first use of any of their names.
import type Library from '@dot-i/k8s-operator'
import { createRequire, registerHooks } from 'node:module'

/** What the library takes of each. */
const lazy: Readonly<Record<string, readonly string[]>> = {
  '@kubernetes/client-node': ['KubeConfig', 'CoreV1Api', 'ApiextensionsV1Api', 'Watch', 'loadYaml'],
  gaxios: ['instance'],
}

/**
 * In place of the module: its names, each of which loads it. Found from the library's folder, whose dependency it is; not
 * from its file, where Node remembers what we put there.
 */
function lazySource(module: string, names: readonly string[]): string {
  const library = createRequire(import.meta.url).resolve('@dot-i/k8s-operator/package.json')
  return `'use strict'
const load = require('node:module').createRequire(${JSON.stringify(library)})
for (const name of ${JSON.stringify(names)}) {
  Object.defineProperty(exports, name, { enumerable: true, get: () => load(${JSON.stringify(module)})[name] })
}`
}

const lazyUrlOf = (module: string): string =>
  new URL(`./lazy-${module.replaceAll(/[^a-z]/g, '-')}.cjs`, import.meta.url).href

function loadLibrary(): typeof Library {
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const asksLibrary = context.parentURL?.includes('/@dot-i/k8s-operator/') ?? false
      if (!(specifier in lazy) || !asksLibrary) return next(specifier, context)
      return { url: lazyUrlOf(specifier), format: 'commonjs', shortCircuit: true }
    },
    load(url, context, next) {
      const found = Object.entries(lazy).find(([module]) => lazyUrlOf(module) === url)
      if (found === undefined) return next(url, context)
      return { format: 'commonjs', source: lazySource(...found), shortCircuit: true }
    },
  })
  try {
    return createRequire(import.meta.url)('@dot-i/k8s-operator') as typeof Library
  } finally {
    hooks.deregister()
  }
}

/** The library's exports. */
export const operatorLibrary = loadLibrary()
