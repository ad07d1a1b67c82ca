module goguest

go 1.24
