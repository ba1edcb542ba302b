export * from './authentication-reports.ts'
