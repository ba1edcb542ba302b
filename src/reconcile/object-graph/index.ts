export * from './object-feed.ts'
export * from './object-graph.ts'
