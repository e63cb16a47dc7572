"""The service's own pages: server-rendered, for control and for machines without Grafana.

    session     who is at the browser: a token in a cookie, and what makes a form's request this page's own
    page        what every page is made with: templates, headers, problems shown to people
    run_pages   the list of runs, one run live, its report
    run_list    the rows of that list
    firing      the alerts that fire, of each run and of none
    run_now     what a live page asks for besides the stream: drives, limits, time left
    start       starting a run, with the safety gate's answer before anything is written
    schedules   the list of schedules, and a form for one more
    drives      the machine's drives
    login       logging in and out
    static_files  the files that pages are made with
    curves      a run's series as columns, and small curves for lists

A page asks the same functions as the API and has no rights of its own.
"""
