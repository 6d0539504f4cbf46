install(TARGETS pawl)
