// @dot-i/k8s-operator without what it would load and we never use. The library requires all of client-node for its own
// constructor, watch and CustomResourceDefinition reader, which ResilientOperator replaces: 87 MB and 0.4 s of every
// start (Node 24). So, for that library alone, client-node is loaded with the first use of any of its names.
import type Library from '@dot-i/k8s-operator'
import { createRequire, registerHooks } from 'node:module'

const lazyUrl = new URL('./lazy-client-node.cjs', import.meta.url).href
const names = ['KubeConfig', 'CoreV1Api', 'ApiextensionsV1Api', 'Watch', 'loadYaml']

const lazySource = `'use strict'
for (const name of ${JSON.stringify(names)}) {
  Object.defineProperty(exports, name, { enumerable: true, get: () => require('@kubernetes/client-node')[name] })
}`

function loadLibrary(): typeof Library {
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const asksLibrary = context.parentURL?.includes('/@dot-i/k8s-operator/') ?? false
      if (specifier !== '@kubernetes/client-node' || !asksLibrary) return next(specifier, context)
      return { url: lazyUrl, format: 'commonjs', shortCircuit: true }
    },
    load(url, context, next) {
      if (url !== lazyUrl) return next(url, context)
      return { format: 'commonjs', source: lazySource, shortCircuit: true }
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
